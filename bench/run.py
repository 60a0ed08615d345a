#!/usr/bin/env python3
"""Measures the hermes binary against floors of the same machine, in one run, and prints a Markdown table.

    cargo build --release && python3 bench/run.py [--binary target/release/hermes] [--runs 15]

Only the standard library. Every row is a median; where there is a floor, its runs and ours take turns, so that a machine
that gets slower hits both. The model is a server in this process that answers at once.
"""
import argparse
import http.server
import json
import os
import shutil
import socketserver
import statistics
import subprocess
import tempfile
import threading
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/hermes")
    parser.add_argument("--runs", type=int, default=15)
    return parser.parse_args()


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for `calls` commands, one a turn, and then answers. It counts the tool results in the request."""

    protocol_version = "HTTP/1.1"
    # Without these the server itself would add 40 ms to every turn (Nagle against delayed ACK).
    disable_nagle_algorithm = True
    wbufsize = -1
    calls = 0
    pid = 0
    peaks = []  # MiB, read from the running process just before its last answer
    seen = []  # (time, bytes) of each request

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Model.seen.append((time.perf_counter(), len(body)))
        done = sum(message["role"] == "tool" for message in json.loads(body)["messages"])
        if done < Model.calls:
            call = {"index": 0, "id": f"c{done}", "type": "function",
                    "function": {"name": "terminal", "arguments": json.dumps({"command": f"echo hi {done}"})}}
            delta, finish = {"tool_calls": [call]}, "tool_calls"
        else:
            delta, finish = {"content": "done"}, "stop"
            with open(f"/proc/{Model.pid}/status") as status:
                Model.peaks += [int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")]
        chunk = json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        answer = f"data: {chunk}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def timed(command, **options):
    """When one command began, and how many seconds it took."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **options)
    Model.pid = process.pid
    if process.wait() != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return began, time.perf_counter() - began


def in_turn(runs, ours, floor):
    """Medians of both, from runs that take turns. The first round only warms up."""
    a, b = [], []
    for i in range(runs + 1):
        x, y = ours(), floor()
        if i:
            a.append(x)
            b.append(y)
    return statistics.median(a), statistics.median(b)


def ms(seconds):
    return f"{seconds * 1e3:.1f} ms"


def main():
    args = arguments()
    binary = os.path.abspath(args.binary)
    if not os.path.exists(binary):
        raise SystemExit(f"{binary} is not there: cargo build --release")
    folder = tempfile.mkdtemp(prefix="hermes-bench-")
    server = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = os.path.join(folder, "home")
    work = os.path.join(folder, "work")
    os.makedirs(home)
    os.makedirs(work)
    with open(os.path.join(home, "config.yaml"), "w") as config:
        config.write(f"model: {{base_url: 'http://127.0.0.1:{server.server_port}/v1', default: bench}}\n")
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "HERMES_HOME": home}
    rows = []
    try:
        version, true = in_turn(args.runs * 3, lambda: timed([binary, "--version"])[1], lambda: timed(["/bin/true"])[1])
        rows.append(("`hermes --version`, whole process", ms(version), f"`/bin/true` {ms(true)}", f"{version / true:.1f}x", "at most 4x"))

        first, size = [], 0
        Model.calls = 0
        for i in range(args.runs + 1):
            Model.seen.clear()
            began, _ = timed([binary, "run", "hi"], cwd=work, env=environment)
            if i:
                first.append(Model.seen[0][0] - began)
            size = Model.seen[0][1]
        rows.append(("start to first request", ms(statistics.median(first)), "", "", "at most 30 ms"))
        rows.append(("bytes of the first request", f"{size:,}", "", "", "below 12,000"))

        def task():
            Model.calls = 20
            return timed([binary, "run", "--approve", "all", "go"], cwd=work, env=environment)[1]

        def commands():
            began = time.perf_counter()
            for i in range(20):
                timed(["bash", "-c", f"echo hi {i}"], cwd=work, env=environment)
            return time.perf_counter() - began

        whole, alone = in_turn(args.runs, task, commands)
        rows.append(("a task of 20 commands, instant model", ms(whole), f"the 20 commands alone {ms(alone)}",
                     f"{(whole - alone) * 1e3:+.0f} ms", "at most 250 ms beyond"))
        rows.append(("peak resident memory of that task", f"{max(Model.peaks):.0f} MiB", "", "", "below 30 MiB"))
    finally:
        server.shutdown()
        shutil.rmtree(folder)
    print(f"{args.runs} runs, medians; {os.cpu_count()} cores; {os.uname().sysname} {os.uname().release}\n")
    print("| what | hermes | floor | ratio | goal |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
