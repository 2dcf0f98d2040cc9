"""A client of a few lines with its adapter, by itself: `small_adapter.py [TROUBLE]`.

It sends binary data alone, and says so where it is asked for anything else.
"""

import base64
import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

TROUBLE = sys.argv[1] if len(sys.argv) > 1 else ""
OCTETS = "application/octet-stream"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def die() -> None:
    sys.stderr.write("the library\x1b[31m has crashed\n")
    sys.stderr.flush()
    os._exit(3)


def once() -> None:
    """Die in the first life alone."""
    try:
        os.close(os.open(os.environ["SMALL_ADAPTER_LIFE"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    die()


# What is done before an inference is made.
MISBEHAVIOURS: dict[str, Callable[[], None]] = {"dies": die, "dies-once": once, "prints": lambda: say("connected")}


def infer(address: str, timeout: float, asked: dict[str, Any]) -> dict[str, Any]:
    if asked.get("raw") or asked.get("coding") or any(one["form"] != "binary" for one in asked["inputs"]):
        return {"cannot": "it sends binary data alone"}
    if TROUBLE in MISBEHAVIOURS:
        MISBEHAVIOURS[TROUBLE]()
    blobs = [base64.b64decode(one["data"]) for one in asked["inputs"]]
    more = 1 if TROUBLE == "wrong-size" else 0
    inputs = [
        {
            "name": one["name"],
            "datatype": one["datatype"],
            "shape": one["shape"],
            "parameters": {"binary_data_size": len(blob) + more},
        }
        for one, blob in zip(asked["inputs"], blobs, strict=True)
    ]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    kind = {} if TROUBLE == "no-type" else {"Content-Type": OCTETS}
    headers = {"Inference-Header-Content-Length": str(len(head)), **kind}
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)
    try:
        connection.request("POST", f"/v2/models/{asked['model']}/infer", head + b"".join(blobs), headers)
        answer = connection.getresponse()
        return outputs(answer, answer.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {"error": {"message": str(error)}}
    finally:
        connection.close()


def outputs(answer: http.client.HTTPResponse, body: bytes) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": body.decode("latin-1"), "status": answer.status}}
    at = int(answer.headers["Inference-Header-Content-Length"])
    found = []
    for one in json.loads(body[:at])["outputs"]:
        size = one["parameters"]["binary_data_size"]
        data = base64.b64encode(body[at : at + size]).decode()
        found.append({"name": one["name"], "datatype": one["datatype"], "shape": one["shape"], "data": data})
        at += size
    return {"outputs": found}


for line in sys.stdin:
    command = json.loads(line)
    if command["command"] == "hello":
        if TROUBLE == "silent":
            time.sleep(600)
        transports = ["http", "grpc"] if TROUBLE == "both" else ["http"]
        said: dict[str, Any] = {
            "client": {"name": "small", "version": "1.2", "language": "Python", "transports": transports}
        }
    else:
        made = [infer(command["address"], command["timeout_s"], one) for one in command["inferences"]]
        said = {"results": made}
    say(json.dumps({"seq": command["seq"], **said}))
