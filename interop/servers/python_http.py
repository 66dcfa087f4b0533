"""Serves a server of the Python SDK as Streamable HTTP on loopback, for the servers in this folder."""

import contextlib
import os
import socket

import uvicorn
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route

RETRY_MS = 100


class Events(EventStore):
    """All events in one list; an event id is its place. Streams of different sessions share names in this
    SDK, which does no harm here: one client at a time resumes."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        stream = self.events[last][0]
        for place, (stream_id, message) in enumerate(self.events):
            if place > last and stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(place)))
        return stream


class Endpoint:
    """The SDK's session manager, with a note of every session that is ended by its client."""

    def __init__(self, manager, deleted):
        self.manager = manager
        self.deleted = deleted

    async def __call__(self, scope, receive, send):
        if scope["method"] == "DELETE":
            self.deleted.append(dict(scope["headers"]).get(b"mcp-session-id", b"").decode())
        await self.manager.handle_request(scope, receive, send)


def serve_http(server, deleted, json_bodies=False):
    """Prints the URL as the first line. $PORT sets the port. Ids of the sessions that a client ended go to `deleted`."""
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    host = "127.0.0.1:%d" % listener.getsockname()[1]
    manager = StreamableHTTPSessionManager(
        server,
        event_store=None if json_bodies else Events(),
        json_response=json_bodies,
        retry_interval=RETRY_MS,
        security_settings=TransportSecuritySettings(allowed_hosts=[host], allowed_origins=[f"http://{host}"]),
    )

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with manager.run():
            yield

    app = Starlette(routes=[Route("/mcp", Endpoint(manager, deleted))], lifespan=lifespan)
    print(f"http://{host}/mcp", flush=True)
    # Open event streams would hold up the end for ever: give them a second.
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
