"""Loaded by Schemathesis: writes each answer as a line of JSON to the file that CUSTODY_ANSWERS names, for schemathesis.ts to count."""

import json
import os

import schemathesis

_file = open(os.environ["CUSTODY_ANSWERS"], "a", encoding="utf-8", buffering=1)


@schemathesis.check
def answer_is_counted(ctx, response, case):
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    _file.write(json.dumps({
        "method": case.method.lower(),
        "own": case.operation.method.lower(),
        "path": case.operation.path,
        "status": response.status_code,
        "positive": case.meta is not None and case.meta.generation.mode.is_positive,
        "code": problem.get("code"),
        "field": problem.get("field"),
        "message": problem.get("message"),
    }) + "\n")
