"""An HTTP server on a free port of loopback for the tests: threads that end with the test, no log, no word about clients that
hang up. `answer(request)` is called with the body already named by its length; what all of them need to spoil an answer is here."""
import contextlib
import http.server
import socket
import threading


class LoopbackServer:
    """Subclasses answer(); `over` is set when the test is over, so that no client waits for an answer beyond it."""

    def __init__(self):
        self.faults, self.counts = {}, {}  # (kind, how manieth of its kind) -> what goes wrong
        self.lock, self.over = threading.Lock(), threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                owner.answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            do_POST = do_PUT = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # clients that hang up are part of the tests
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def next_fault(self, kind):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            return self.faults.pop((kind, self.counts[kind]), None)

    @staticmethod
    def cut(request):
        request.close_connection = True
        with contextlib.suppress(OSError):
            request.connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def say(request, status, raw, headers=()):
        request.send_response(status)
        for name, value in dict(headers).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)
