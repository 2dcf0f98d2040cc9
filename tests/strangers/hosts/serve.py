"""Serves wsgi.py by an HTTP server that has no command of its own: `python serve.py NAME PORT`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wsgi import app

HOST = "127.0.0.1"
THREADS = 8


def serve_gevent(port: int) -> None:
    from gevent.pywsgi import WSGIServer

    WSGIServer((HOST, port), app).serve_forever()


def serve_aiohttp(port: int) -> None:
    """Serve by aiohttp and aiohttp-wsgi."""
    from aiohttp import web
    from aiohttp_wsgi import WSGIHandler

    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path_info:.*}", WSGIHandler(app))
    web.run_app(application, host=HOST, port=port)


def serve_wsgiref(port: int) -> None:
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIServer, make_server

    class Threaded(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    make_server(HOST, port, app, server_class=Threaded).serve_forever()


def serve_cheroot(port: int) -> None:
    """Serve by cheroot, CherryPy's server."""
    from cheroot.wsgi import Server

    Server((HOST, port), app).start()


def serve_werkzeug(port: int) -> None:
    """Serve by werkzeug's development server, which is Flask's."""
    from werkzeug.serving import run_simple

    run_simple(HOST, port, app, threaded=True)


def serve_tornado(port: int) -> None:
    from tornado.httpserver import HTTPServer
    from tornado.ioloop import IOLoop
    from tornado.wsgi import WSGIContainer

    HTTPServer(WSGIContainer(app, ThreadPoolExecutor(THREADS))).listen(port, HOST)
    IOLoop.current().start()


def serve_twisted(port: int) -> None:
    from twisted.internet import reactor
    from twisted.web.server import Site
    from twisted.web.wsgi import WSGIResource

    running: Any = reactor
    running.listenTCP(port, Site(WSGIResource(running, running.getThreadPool(), app)), interface=HOST)
    running.run()


SERVERS: Mapping[str, Callable[[int], None]] = {
    "gevent": serve_gevent,
    "aiohttp": serve_aiohttp,
    "wsgiref": serve_wsgiref,
    "cheroot": serve_cheroot,
    "werkzeug": serve_werkzeug,
    "tornado": serve_tornado,
    "twisted": serve_twisted,
}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
