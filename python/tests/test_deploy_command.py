# SPDX-License-Identifier: Apache-2.0
"""tfos deploy: what it prints is what render_template.py prints."""

import os
import re
import subprocess
import sys

import pytest

from test_deploy import CREDENTIAL, DEPLOY, run_render

pytest.importorskip("jinja2")

# The kind, its template, what tfos deploy is given, and what render_template.py.
RENDERED = [
    ("kubernetes", "kubernetes/template.yaml.jinja", "--workers 4 --ps 2", "worker_replicas=4 ps_replicas=2"),
    ("kubernetes", "kubernetes/template.yaml.jinja", " ".join(CREDENTIAL), " ".join(CREDENTIAL)),
    ("volume", "kubernetes/volume.yaml.jinja", "storage_class=nfs", "storage_class=nfs"),
    ("swarm", "swarm/template.yaml.jinja", "image=me/mnist:v2 --workers=3", "image=me/mnist:v2 worker_replicas=3"),
    ("marathon", "marathon/template.json.jinja", "--ps 1 tensorboard=false", "ps_replicas=1 tensorboard=false"),
    ("distribution_strategy", "distribution_strategy/template.yaml.jinja", "--workers 3 has_eval=true", "worker_replicas=3 has_eval=true"),
    ("data_service", "data_service/data_service.yaml.jinja", "--workers 2", "workers=2"),
    ("data_service_interfaces", "data_service/data_service_interfaces.yaml.jinja", "--workers 2", "workers=2"),
    ("kubeflow", "kubeflow/tfjob.yaml.jinja", "--workers 3 --ps 1", "worker_replicas=3 ps_replicas=1"),
    ("spark_application", "kubeflow/spark_application.yaml.jinja", "--workers 3", "executors=3"),
    ("notebook", "kubeflow/notebook.yaml.jinja", "", ""),
    ("serving", "kubeflow/serving.yaml.jinja", "model_base_path=gs://b/export", "model_base_path=gs://b/export"),
]


def deploy(*arguments, **variables):
    command = os.path.join(os.path.dirname(sys.executable), "tfos")
    return subprocess.run([command, "deploy", *arguments], capture_output=True, text=True, env={**os.environ, **variables})


def test_deploy_prints_what_render_template_prints():
    kinds = re.findall(r"^  (\w+)  ", deploy("--help").stdout, re.MULTILINE)
    assert sorted(kinds) == sorted({kind for kind, *_ in RENDERED})
    assert {file for _, file, *_ in RENDERED} == {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*.jinja")}
    for kind, file, given, variables in RENDERED:
        ours, expected = deploy(kind, *given.split()), run_render(file, *variables.split())
        assert (ours.returncode, ours.stdout, ours.stderr) == (0, expected.stdout, "") and expected.stdout, ours.stderr


def test_what_deploy_cannot_render_is_said(tmp_path):
    result = deploy("kubernetes", "workers=2")
    assert result.returncode == 1 and "the template has no variable workers; it has " in result.stderr and not result.stdout
    (tmp_path / "jinja2.py").write_text("raise ImportError('No module named jinja2')")
    result = deploy("kubernetes", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1 and re.search(r"templates are Jinja2's, which \S+ lacks .*; type: \S+ -m pip install Jinja2", result.stderr)
    assert not result.stdout and "Traceback" not in result.stderr
