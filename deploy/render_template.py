#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders a Jinja2 template to the standard output.

    render_template.py FILE [NAME=VALUE ...]

A template sets its variables in its first lines; edit them there, in a copy, or give them here. A VALUE is a number, a list, a dictionary, True or
False where it reads as one in Python or JSON, else text.
"""

import ast
import logging
import sys

try:
    import jinja2
    import jinja2.meta
except ImportError as error:
    sys.exit(f"render_template.py: templates are Jinja2's, which {sys.executable} lacks ({error}); type: {sys.executable} -m pip install Jinja2")


def parse_value(text):
    """What a VALUE of the command line stands for."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def render(text, variables, logger):
    """The rendered text. A variable that is nowhere set is empty, and is told to the logger.

    Raises:
        KeyError: one of the variables is not one of the template's.
    """
    environment = jinja2.Environment(undefined=jinja2.make_logging_undefined(logger))
    # A variable may have the name of a function of Jinja2's, as "namespace" has.
    for name in environment.parse(text).find_all(jinja2.nodes.Name):
        if name.ctx == "store":
            environment.globals.pop(name.name, None)
    known = jinja2.meta.find_undeclared_variables(environment.parse(text))
    unknown = sorted(set(variables) - known)
    if unknown:
        raise KeyError(f"the template has no variable {unknown[0]}; it has {', '.join(sorted(known)) or 'none that can be given'}")
    return environment.from_string(text).render(variables)


def main(arguments):
    if not arguments or not all("=" in argument for argument in arguments[1:]):
        print(f"usage: {sys.argv[0]} FILE [NAME=VALUE ...]", file=sys.stderr)
        return 2
    logging.basicConfig(format=f"{arguments[0]}: %(message)s")
    variables = {name: parse_value(value) for name, _, value in (argument.partition("=") for argument in arguments[1:])}
    try:
        with open(arguments[0], encoding="utf-8") as file:
            text = file.read()
        print(render(text, variables, logging.getLogger("template")))
    except (OSError, jinja2.TemplateError, KeyError) as error:
        line = f":{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        print(f"{arguments[0]}{line}: not rendered: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
