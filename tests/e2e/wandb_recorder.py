"""A W&B server that only records: what runs it was told of, by the two requests that make a run (UpsertBucket and
file_stream), the files the genuine client adds, and the queries by which `wandb.Api()` reads a run back. It applies history by
offset, as the protocol says, and can be told to fail in given ways."""
import base64
import json
import math
import re
import time

from loopback_server import LoopbackServer

KEY = "0123456789abcdef0123456789abcdef01234567"  # belongs to no account
ENTITY = "team"


def rfc1123(seconds_from_now):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + seconds_from_now))


def worded(values):
    """Values in the form in which W&B returns them: JSON has no NaN, so it is a word there."""
    odd = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return {k: "NaN" if v != v else odd.get(v, v) if isinstance(v, float) else v for k, v in values.items()}


class Recorder(LoopbackServer):
    def __init__(self):
        self.runs, self.calls, self.unknown = {}, [], []
        self.rewritten = []  # history lines that were given twice with different values
        super().__init__()

    # Requests, and how they fail when they shall.

    def answer(self, request, body):
        path = re.sub(r"^http://[^/]+", "", request.path)  # whole when this is asked as a proxy
        kind = "file_stream" if path.endswith("/file_stream") else "graphql" if path == "/graphql" else "other"
        expected = "Basic " + base64.b64encode(f"api:{KEY}".encode()).decode()
        with self.lock:
            self.calls.append((kind, request.path, body))
        fault = self.next_fault(kind)
        if fault in ("400", "409", "429", "429 date", "500"):
            wait = {"429": "1", "429 date": rfc1123(1)}.get(fault)
            return self.reply(request, int(fault.split()[0]), {"error": f"injected {fault}"}, {"Retry-After": wait} if wait else {})
        if fault == "cut":
            return self.cut(request)
        if kind != "other" and request.headers.get("Authorization") != expected:
            return self.reply(request, 401, {"error": f"no such key: {request.headers.get('Authorization')}"})
        with self.lock:
            status, reply = self.carry_out(kind, path, body)
        if fault == "no answer":
            self.over.wait(60)  # until the test is over: the client gives up first
        if fault in ("cut after", "no answer"):
            return self.cut(request)
        self.reply(request, status, reply)

    def reply(self, request, status, body, headers=()):
        self.say(request, status, json.dumps(body).encode(), {**dict(headers), "Content-Type": "application/json"})

    # Storage.

    def carry_out(self, kind, path, body):
        if kind == "graphql":
            asked = json.loads(body)
            return self.graphql(asked.get("operationName"), asked["query"], asked.get("variables") or {})
        stream = re.fullmatch(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream", path)
        if not stream:
            return 200, {}  # uploads of the genuine client
        run = self.runs.get(stream[3])
        if not run or (stream[1], stream[2]) != (ENTITY, run["project"]):
            return 404, {"error": "no such run"}
        return self.stream(run, json.loads(body))

    def stream(self, run, body):
        files = body.get("files", {})
        if "wandb-history.jsonl" in files:
            part = files["wandb-history.jsonl"]
            for i, line in enumerate(part["content"]):
                at, value = part["offset"] + i, json.loads(line)
                if at in run["history"] and json.dumps(run["history"][at]) != json.dumps(value):
                    self.rewritten.append((run["name"], at))
                run["history"][at] = value
        if "wandb-summary.json" in files:
            run["summary"] = json.loads(files["wandb-summary.json"]["content"][-1])
        if body.get("complete"):
            run["state"] = "finished" if body.get("exitcode") == 0 else "failed"
        return 200, {"exitcode": None, "limits": {}}

    def graphql(self, name, query, v):
        if "upsertBucket" in query:
            return 200, {"data": {"upsertBucket": self.upsert(v)}}
        if "createRunFiles" in query:
            files = [{"name": f, "uploadUrl": f"{self.base}/storage/{f}"} for f in v["files"]]
            return 200, {"data": {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": files}}}
        if name == "Viewer" or "viewer" in query:
            viewer = {"id": "u1", "entity": ENTITY, "username": "someone", "flags": "{}", "admin": False, "email": "a@b.c",
                      "teams": {"edges": []}, "apiKeys": {"edges": []}}
            return 200, {"data": {"viewer": viewer, "serverInfo": SERVER}}
        if "serverInfo" in query:
            return 200, {"data": {"serverInfo": SERVER}}
        run = self.runs.get(v.get("name") or v.get("run") or v.get("runName"))
        if "parquetHistory" in query and run:
            live = [worded(run["history"][i]) for i in sorted(run["history"])]
            return 200, {"data": {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": live}}}}}
        if "project(" in query and run:
            return 200, {"data": {"project": {"internalId": "p1", "run": self.public(run, v, query)}}}
        if "model(" in query and "bucket(" in query:
            return 200, {"data": {"model": {"bucket": None}}}
        self.unknown.append((name, query, v))
        return 200, {"data": {}}

    def upsert(self, v):
        by_id = next((r for r in self.runs.values() if v.get("id") == r["id"]), None)
        run, inserted = by_id or self.runs.get(v.get("name")), False
        if run is None:
            inserted = True
            run = self.runs[v["name"]] = {"id": f"storage-{len(self.runs)}", "name": v["name"], "history": {}, "summary": {},
                                          "config": {}, "state": "running", "project": v.get("project") or "uncategorized"}
        for key in ("displayName", "groupName", "jobType", "notes", "tags"):
            if v.get(key) is not None:
                run[key] = v[key]
        if v.get("config"):
            run["config"] = json.loads(v["config"])
        if v.get("summaryMetrics"):
            run["summary"] = json.loads(v["summaryMetrics"])
        bucket = {"id": run["id"], "name": run["name"], "displayName": run.get("displayName"), "description": "",
                  "config": json.dumps(run["config"]), "sweepName": None, "historyLineCount": len(run["history"]),
                  "project": {"id": "p1", "name": run["project"], "entity": {"id": "e1", "name": ENTITY}}}
        return {"bucket": bucket, "inserted": inserted}

    def public(self, run, v, query):
        """A run as wandb.Api() wants it."""
        history = [worded(run["history"][i]) for i in sorted(run["history"])]
        low, high = v.get("minStep", 0), v.get("maxStep", 1 << 60)
        page = [json.dumps(line) for line in history if low <= line["_step"] < high]
        return {"id": run["id"], "tags": run.get("tags", []), "name": run["name"], "displayName": run.get("displayName"),
                "sweepName": None, "state": run["state"], "config": json.dumps(run["config"]), "group": run.get("groupName"),
                "jobType": run.get("jobType"), "commit": None, "readOnly": False, "createdAt": "2026-01-01T00:00:00",
                "heartbeatAt": "2026-01-01T00:00:00", "description": "", "notes": run.get("notes"), "systemMetrics": "{}",
                "summaryMetrics": json.dumps(worded(run["summary"])), "historyLineCount": len(history), "projectId": "1",
                "user": {"name": "someone", "username": "someone"}, "historyKeys": {"lastStep": len(history) - 1, "keys": {}},
                "history": page, "sampledHistory": [[json.loads(p) for p in page]], "internalId": "r1"}

    # Questions of tests.

    def state(self):
        """run -> all that a person would see of it; not stamps, and not what the client says of itself."""
        def shown(values):
            return {k: v for k, v in values.items() if k not in ("_timestamp", "_runtime", "_wandb")}
        return {name: {"config": {k: v["value"] for k, v in run["config"].items() if k != "_wandb"},
                       "history": {at: shown(line) for at, line in run["history"].items()},
                       "summary": shown(run["summary"]), "state": run["state"], "project": run["project"],
                       **{k: run.get(k) for k in ("displayName", "groupName", "jobType", "notes", "tags")}}
                for name, run in self.runs.items()}


SERVER: dict = {"cliVersionInfo": {"max_cli_version": "99.0.0"}, "latestLocalVersionInfo": None, "features": []}
