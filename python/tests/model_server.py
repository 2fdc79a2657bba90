# SPDX-License-Identifier: Apache-2.0
"""A fake of TensorFlow Serving: its HTTP interface for one SavedModel, which refuses what does not fit the model's signature."""

import contextlib
import http.server
import json
import threading

import numpy as np


def predict(signature, body):
    """The answer to a request of ``instances``."""
    specs = signature.structured_input_signature[1]
    instances = body["instances"]
    if not isinstance(instances[0], dict):  # a model of one input
        instances = [dict(zip(specs, [instance])) for instance in instances]
    given = {}
    for name, spec in specs.items():
        given[name] = np.array([instance[name] for instance in instances], spec.dtype.as_numpy_dtype)
        if not spec.shape.is_compatible_with(given[name].shape):
            raise ValueError(f"{name} has shape {given[name].shape}, not {spec.shape}")
    outputs = {name: tensor.numpy().tolist() for name, tensor in signature(**given).items()}
    rows = [dict(zip(outputs, row)) for row in zip(*outputs.values())]
    return {"predictions": [next(iter(row.values())) if len(row) == 1 else row for row in rows]}


@contextlib.contextmanager
def serving(name, export_dir):
    """The address of a server of the model."""
    import tensorflow as tf

    model = tf.saved_model.load(export_dir)
    signature = model.signatures["serving_default"]
    state = {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]}
    inputs = {name: {"dtype": spec.dtype.name, "shape": str(spec.shape)} for name, spec in signature.structured_input_signature[1].items()}
    pages = {f"/v1/models/{name}": state, f"/v1/models/{name}/metadata": {"model_spec": {"name": name}, "metadata": {"signature_def": inputs}}}

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, status, value):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode() + b"\n")

        def do_GET(self):
            self.answer(200 if self.path in pages else 404, pages.get(self.path, {"error": "Malformed request"}))

        def do_POST(self):
            try:
                assert self.path == f"/v1/models/{name}:predict"
                self.answer(200, predict(signature, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            except Exception as error:
                self.answer(400, {"error": repr(error)})

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
