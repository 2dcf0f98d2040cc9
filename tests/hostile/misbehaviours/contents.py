"""Bodies that are whole, and hold what no reader of JSON likes, or what is to run where it is shown."""

from __future__ import annotations

from tests.hostile.misbehaviours.rows import add_row, make_answer

_JSON = "Content-Type: application/json"
# Names and messages that would change a terminal, a page or a report in which they stood as they are.
NASTY = "\x1b[31m\x07<script>alert(1)</script>\u202egnp.exe](javascript:1)|`&amp;\"'\x00\u2028"

TEXTS = {
    "json-of-nan": b'{"outputs":[{"name":"O","datatype":"FP32","shape":[1],"data":[NaN]}]}',
    "json-of-infinity": b'{"outputs":[{"name":"O","datatype":"FP32","shape":[-Infinity],"data":[1e999]}]}',
    "deep-json": b"[" * 100_000,
    "deep-objects": b'{"outputs":' * 50_000 + b"1" + b"}" * 50_000,
    "huge-integers": b'{"outputs":[{"name":"O","datatype":"INT32","shape":[%s],"data":[1]}]}' % (b"9" * 5000),
    "members-twice": b'{"outputs":[],"outputs":[{"name":"O","name":"P"}],"error":1,"error":2}',
    "a-byte-order-mark": b'\xef\xbb\xbf{"outputs":[]}',
    "utf-16": '{"outputs":[]}'.encode("utf-16"),
    "lone-surrogates": b'{"error":"\\ud800 \\udfff","outputs":[{"name":"\\ud800"}]}',
    "not-utf-8": b'{"error":"\xff\xfe"}',
    "nasty-names": ('{"error":"%s","outputs":[{"name":"%s"}]}' % (NASTY, NASTY)).encode(),  # noqa: UP031
    "a-number-in-place-of-an-object": b"1e400",
    "nothing": b"",
    "a-hundred-dimensions": b'{"outputs":[{"name":"O","datatype":"INT8","shape":[%s1],"data":[1]}]}' % (b"1," * 99),
    "shapes-beyond-all": b'{"outputs":[{"name":"O","datatype":"INT8","shape":[9223372036854775808,0,-1],"data":[]}]}',
}
for _name, _text in TEXTS.items():
    add_row(_name, make_answer(200, _JSON, body=_text), 200)
    add_row(f"{_name}-refusing", make_answer(400, _JSON, body=_text), 400)
add_row("a-length-header-of-5000-digits", make_answer(200, "Inference-Header-Content-Length: " + "9" * 5000), 200)
add_row("a-length-header-that-is-negative", make_answer(200, "Inference-Header-Content-Length: -5"), 200)
