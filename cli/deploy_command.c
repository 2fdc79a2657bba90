// SPDX-License-Identifier: Apache-2.0
/// tfos deploy: what a manager takes, from a template of the folder deploy, which the package has.
/// Templates are Jinja2's, so this process becomes the Python that the command belongs to, which
/// runs deploy/render_template.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "commands.h"
#include "manual.h"
#include "program.h"
#include "terminal.h"
#include "value_text.h"

#define VARIABLE_SIZE 64

// sys.argv[1] is the template, below deploy; behind it stand its variables.
static const char code[] =
    "import importlib.util, os, runpy\n"
    "spec = importlib.util.find_spec('tensorflowonspark')\n"
    "folder = os.path.join(os.path.dirname(spec.origin), 'deploy') if spec else None\n"
    "if not folder or not os.path.exists(folder):\n"
    "    sys.exit('tfos deploy: %s lacks the package tfos, which has the templates: install it for "
    "it, or have a python3 in PATH that has it' % sys.executable)\n"
    "script = os.path.join(folder, 'render_template.py')\n"
    "sys.argv = [script, os.path.join(folder, sys.argv[1])] + sys.argv[2:]\n"
    "runpy.run_path(script, run_name='__main__')\n";

// `workers` and `ps` are the variables that the options set; NULL where the template has none.
static const struct kind {
    const char *name, *file, *workers, *ps, *help;
} kinds[] = {
    {"kubernetes", "kubernetes/template.yaml.jinja", "worker_replicas", "ps_replicas",
     "workers and parameter servers on Kubernetes"},
    {"volume", "kubernetes/volume.yaml.jinja", NULL, NULL, "the volume that their pods share"},
    {"swarm", "swarm/template.yaml.jinja", "worker_replicas", "ps_replicas",
     "for Docker Compose and Docker Swarm"},
    {"marathon", "marathon/template.json.jinja", "worker_replicas", "ps_replicas",
     "for Marathon on Mesos"},
    {"distribution_strategy", "distribution_strategy/template.yaml.jinja", "worker_replicas",
     "ps_replicas", "Keras in step by TF_CONFIG, on Kubernetes"},
    {"data_service", "data_service/data_service.yaml.jinja", "workers", NULL,
     "tf.data's service: dispatcher and workers"},
    {"data_service_interfaces", "data_service/data_service_interfaces.yaml.jinja", "workers", NULL,
     "its addresses for clients outside"},
    {"kubeflow", "kubeflow/tfjob.yaml.jinja", "worker_replicas", "ps_replicas",
     "a TFJob of kubeflow"},
    {"spark_application", "kubeflow/spark_application.yaml.jinja", "executors", NULL,
     "a SparkApplication of kubeflow"},
    {"notebook", "kubeflow/notebook.yaml.jinja", NULL, NULL, "a notebook of kubeflow"},
    {"serving", "kubeflow/serving.yaml.jinja", NULL, NULL, "TensorFlow Serving"},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

bool deploy_kind_entry(size_t index, struct help_entry *entry)
{
    if (index >= KIND_COUNT)
        return false;
    *entry = (struct help_entry){kinds[index].name, "", kinds[index].help};
    return true;
}

static void print_usage(FILE *out)
{
    fputs("usage: tfos deploy KIND [--workers N] [--ps N] [NAME=VALUE ...]\n\n", out);
    for (size_t i = 0; i < KIND_COUNT; i++)
        fprintf(out, "  %-25s%s\n", kinds[i].name, kinds[i].help);
    fputs("\nPrints what the manager takes. NAME is a variable of the template, such as image; "
          "those\n"
          "that it has stand in its first lines and in its README, in the folder deploy of the "
          "source.\n\n"
          "  tfos deploy kubernetes --workers 4 --ps 2 image=me/mnist:v1 | kubectl create -f -\n",
          out);
}

static int refuse(const char *name, const char *reason)
{
    fprintf(stderr, "tfos deploy: %s%s\n", name, reason);
    print_usage(stderr);
    return EXIT_USAGE;
}

// The value of an option at argv[*i], which follows it or "="; NULL where there is
// none.
static const char *option_value(int argc, char **argv, int *i)
{
    const char *value = strchr(argv[*i], '=');
    if (value)
        return value + 1;
    return *i + 1 < argc ? argv[++*i] : NULL;
}

// Writes "worker_replicas=4" for --workers at argv[*i]. The exit status.
static int translate_option(const struct kind *kind, int argc, char **argv, int *i,
                            char text[VARIABLE_SIZE])
{
    const char *option = argv[*i];
    int size = (int)strcspn(option, "=");
    bool is_workers = size == 9 && strncmp(option, "--workers", 9) == 0;
    bool is_ps = size == 4 && strncmp(option, "--ps", 4) == 0;
    const char *variable = is_workers ? kind->workers : kind->ps;
    int64_t count;
    if (!is_workers && !is_ps)
        return refuse(option, " is no option; variables are given as NAME=VALUE");
    if (!variable) {
        fprintf(stderr, "tfos deploy: %s has no %.*s\n", kind->name, size, option);
        return EXIT_USAGE;
    }
    const char *value = option_value(argc, argv, i);
    if (!value || !integer_parse(value, &count, NULL) || count < 0) {
        fprintf(stderr, "tfos deploy: %.*s takes a whole number, not \"%s\"\n", size, option,
                value ? value : "");
        return EXIT_USAGE;
    }
    snprintf(text, VARIABLE_SIZE, "%s=%lld", variable, (long long)count);
    return 0;
}

// What render_template.py is given. The exit status.
static int translate(const struct kind *kind, int argc, char **argv, char **arguments,
                     char (*texts)[VARIABLE_SIZE])
{
    size_t count = 0;
    arguments[count++] = (char *)kind->file;
    for (int i = 0; i < argc; i++, count++) {
        arguments[count] = argv[i];
        if (strncmp(argv[i], "--", 2) == 0) {
            arguments[count] = texts[count];
            int status = translate_option(kind, argc, argv, &i, texts[count]);
            if (status != 0)
                return status;
        } else if (!strchr(argv[i], '=')) {
            return refuse(argv[i], " is no NAME=VALUE");
        }
    }
    return 0;
}

static int render(const struct kind *kind, int argc, char **argv)
{
    char **arguments = allocate((size_t)argc + 2, sizeof(*arguments));
    char(*texts)[VARIABLE_SIZE] = allocate((size_t)argc + 1, sizeof(*texts));
    int status = translate(kind, argc, argv, arguments, texts);
    if (status == 0)
        status =
            become_python("tfos deploy: templates are for Python with the packages tfos and Jinja2",
                          code, arguments);
    free(texts);
    free(arguments);
    return status;
}

int run_deploy(int argc, char **argv)
{
    size_t i = 0;
    if (argc < 1)
        return refuse("", "the kind is missing");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    while (i < KIND_COUNT && strcmp(argv[0], kinds[i].name) != 0)
        i++;
    if (i == KIND_COUNT)
        return refuse(argv[0], " is no kind");
    return render(&kinds[i], argc - 1, argv + 1);
}
