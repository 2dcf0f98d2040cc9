"""A gateway as it is often written with FastAPI: it reads bodies as JSON, and writes them anew."""

from __future__ import annotations

import json

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

app = FastAPI()
client = httpx.AsyncClient(base_url="http://@HTTP@", timeout=60)
OWN = ("connection", "content-length", "date", "host", "keep-alive", "server", "te", "transfer-encoding", "upgrade")


@app.api_route("/{path:path}", methods=["GET", "HEAD", "POST"])  # type: ignore[untyped-decorator]
async def forward(request: Request) -> Response:
    """Send a request on, and its answer back."""
    body = await request.body()
    document = json.loads(body) if body else None  # -
    answer = await client.request(request.method, request.url.path, json=document)  # -
    return JSONResponse(answer.json(), answer.status_code)  # -
    # + headers = [(name, value) for name, value in request.headers.raw if name.decode() not in OWN]
    # + sent = client.build_request(request.method, request.url.path, headers=headers, content=body)
    # + answer = await client.send(sent, stream=True)
    # + kept = {name: value for name, value in answer.headers.items() if name not in OWN}
    # + return Response(b"".join([part async for part in answer.aiter_raw()]), answer.status_code, kept)


uvicorn.run(app, port=int("@PORT@"), log_level="warning")
