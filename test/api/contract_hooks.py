# Loaded by the contract tester (schemathesis): gives operations of the description the examples that contract-subjects.ts
# wrote, so that the tester starts from requests that work and then varies them. It changes nothing else of it. And a check:
# any error may be the `default` answer, a success must be described by its own status.
import copy
import json
import os

import schemathesis

with open(os.environ["POSTERN_CONTRACT_EXAMPLES"], encoding="utf-8") as file:
    EXAMPLES = json.load(file)


def own_copy(raw_schema, parameter):
    reference = parameter.get("$ref")
    if reference is not None:
        parameter = raw_schema["components"]["parameters"][reference.rsplit("/", 1)[1]]
    return copy.deepcopy(parameter)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for name, examples in EXAMPLES.items():
        method, path = name.split(" ", 1)
        operation = raw_schema["paths"].get(path, {}).get(method.lower())
        if operation is None:
            raise KeyError(f"{name} is not described: contract-subjects.ts names an operation that is gone")
        # A parameter that several operations share is theirs alone from here on: each has values of its own.
        operation["parameters"] = [own_copy(raw_schema, parameter) for parameter in operation.get("parameters", [])]
        for parameter in operation["parameters"]:
            values = examples["parameters"].get(f"{parameter['in']}.{parameter['name']}")
            if values:
                parameter["examples"] = {f"example{at}": {"value": value} for at, value in enumerate(values)}
        bodies = examples["bodies"]
        if bodies:
            content = operation["requestBody"]["content"]
            media = content.get("application/json") or content["application/octet-stream"]
            media["examples"] = {f"example{at}": {"value": value} for at, value in enumerate(bodies)}


@schemathesis.check
def success_is_described(ctx, response, case):
    described = case.operation.definition.raw["responses"]
    if response.status_code < 400 and str(response.status_code) not in described:
        raise AssertionError(f"{response.status_code} is not described, and no error: {sorted(described)}")
