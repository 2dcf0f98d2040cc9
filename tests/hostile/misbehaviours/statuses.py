"""Answers that want the client to go elsewhere, to show who it is, to wait, or to keep something."""

from __future__ import annotations

from tests.hostile.misbehaviours.rows import says, whole

_BASIC = 'WWW-Authenticate: Basic realm="x"'

for _status in (301, 302, 303, 307, 308):
    says(f"redirects-to-itself-{_status}", whole(_status, "Location: /v2/models/m/infer"), _status)
    says(f"redirects-elsewhere-{_status}", whole(_status, "Location: http://127.0.0.1:9/steal"), _status)
says("redirects-to-a-file", whole(302, "Location: file:///etc/passwd"), 302)
says("redirects-nowhere", whole(302), 302)
says("redirects-by-refresh", whole(200, "Refresh: 0; url=http://127.0.0.1:9/"), 200)
says("wants-a-password", whole(401, _BASIC), 401)
says("wants-a-password-and-says-no-how", whole(401), 401)
says("wants-a-digest", whole(401, 'WWW-Authenticate: Digest realm="x", nonce="y"'), 401)
says("wants-negotiation", whole(401, "WWW-Authenticate: Negotiate"), 401)
says("forbids", whole(403), 403)
says("forbids-and-wants-a-password", whole(403, _BASIC), 403)
says("wants-a-password-for-a-proxy", whole(407, 'Proxy-Authenticate: Basic realm="x"'), 407)
says("wants-patience", whole(429, "Retry-After: 100000"), 429)
says("wants-patience-until-a-date", whole(429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), 429)
says("is-busy", whole(503, "Retry-After: 100000"), 503)
says("gives-cookies", whole(200, "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d"), 200)
says("wants-other-services", whole(200, 'Alt-Svc: h2="127.0.0.1:9"', "Strict-Transport-Security: max-age=9"), 200)
says("wants-an-upgrade", whole(426, "Upgrade: h2c", "Connection: Upgrade"), 426)
says("status-999", whole(999), 999)
