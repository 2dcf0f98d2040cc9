// A gateway as it is often written with Express: the body is parsed for authorization or logging, and sent on as JSON.
import express from "express";
import { createProxyMiddleware, fixRequestBody } from "http-proxy-middleware";

const app = express();
app.use(express.json()); // -
app.use(createProxyMiddleware({ target: "http://@HTTP@", on: { proxyReq: fixRequestBody } })); // -
// + app.use(createProxyMiddleware({ target: "http://@HTTP@" }));
app.listen(@PORT@, "127.0.0.1");
