"""Answers that want the client to go elsewhere, to show who it is, to wait, or to keep something."""

from __future__ import annotations

from tests.hostile.misbehaviours.rows import add_row, make_answer

_BASIC = 'WWW-Authenticate: Basic realm="x"'

for _status in (301, 302, 303, 307, 308):
    add_row(f"redirects-to-itself-{_status}", make_answer(_status, "Location: /v2/models/m/infer"), _status)
    add_row(f"redirects-elsewhere-{_status}", make_answer(_status, "Location: http://127.0.0.1:9/steal"), _status)
add_row("redirects-to-a-file", make_answer(302, "Location: file:///etc/passwd"), 302)
add_row("redirects-nowhere", make_answer(302), 302)
add_row("redirects-by-refresh", make_answer(200, "Refresh: 0; url=http://127.0.0.1:9/"), 200)
add_row("wants-a-password", make_answer(401, _BASIC), 401)
add_row("wants-a-password-and-says-no-how", make_answer(401), 401)
add_row("wants-a-digest", make_answer(401, 'WWW-Authenticate: Digest realm="x", nonce="y"'), 401)
add_row("wants-negotiation", make_answer(401, "WWW-Authenticate: Negotiate"), 401)
add_row("forbids", make_answer(403), 403)
add_row("forbids-and-wants-a-password", make_answer(403, _BASIC), 403)
add_row("wants-a-password-for-a-proxy", make_answer(407, 'Proxy-Authenticate: Basic realm="x"'), 407)
add_row("wants-patience", make_answer(429, "Retry-After: 100000"), 429)
add_row("wants-patience-until-a-date", make_answer(429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), 429)
add_row("is-busy", make_answer(503, "Retry-After: 100000"), 503)
add_row("gives-cookies", make_answer(200, "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d"), 200)
add_row(
    "wants-other-services", make_answer(200, 'Alt-Svc: h2="127.0.0.1:9"', "Strict-Transport-Security: max-age=9"), 200
)
add_row("wants-an-upgrade", make_answer(426, "Upgrade: h2c", "Connection: Upgrade"), 426)
add_row("status-999", make_answer(999), 999)
