// Generated from the table of methods by make generate.

import { CloveError } from "./errors.js";

export const VERSION = 1;

export const MAX_LINE = 65536;

export class ParseError extends CloveError {}
export class RequestError extends CloveError {}
export class MethodError extends CloveError {}
export class InvalidError extends CloveError {}
export class InternalError extends CloveError {}
export class NotFoundError extends CloveError {}
export class ConflictError extends CloveError {}
export class UnenforceableError extends CloveError {}
export class DeniedError extends CloveError {}
export class BusyError extends CloveError {}
export class TooLargeError extends CloveError {}
export class CancelledError extends CloveError {}
export class DrainingError extends CloveError {}
export class StorageError extends CloveError {}
export class SessionError extends CloveError {}
export class BudgetError extends CloveError {}

export const ERRORS = {
  "parse": ParseError,
  "request": RequestError,
  "method": MethodError,
  "invalid": InvalidError,
  "internal": InternalError,
  "not-found": NotFoundError,
  "conflict": ConflictError,
  "unenforceable": UnenforceableError,
  "denied": DeniedError,
  "busy": BusyError,
  "too-large": TooLargeError,
  "cancelled": CancelledError,
  "draining": DrainingError,
  "storage": StorageError,
  "session": SessionError,
  "budget": BudgetError,
};

export const AGENT_METHODS = {
  "agent.get": { shape: "call", lists: ["grants", "budgets"] },
  "agent.ready": { shape: "call" },
  "agent.handoff": { shape: "call", keyed: true },
  "agent.accept": { shape: "call", keyed: true },
  "agent.withdraw": { shape: "call", keyed: true },
  "agent.offers": { shape: "call", lists: ["offers"], parts: "offers" },
  "agent.spawn": { shape: "call", keyed: true },
  "agent.wait": { shape: "call" },
  "agent.signal": { shape: "call", keyed: true },
  "agent.list": { shape: "call", lists: ["children"], parts: "children" },
  "agent.tree": { shape: "call", lists: ["children"], parts: "children" },
  "agent.result": { shape: "call", keyed: true },
  "agent.collect": { shape: "call", keyed: true, lists: ["left"] },
  "grant.list": { shape: "call", lists: ["grants"], parts: "grants" },
  "grant.derive": { shape: "call", keyed: true },
  "grant.revoke": { shape: "call", keyed: true, lists: ["revoked"] },
  "grant.check": { shape: "call" },
  "budget.get": { shape: "call", lists: ["budgets"] },
  "budget.reserve": { shape: "call", keyed: true },
  "budget.settle": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.release": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.charge": { shape: "call", keyed: true, lists: ["budgets"] },
  "mail.send": { shape: "call", keyed: true },
  "mail.receive": { shape: "call", lists: ["messages"] },
  "mail.ack": { shape: "call", keyed: true },
  "mail.reply": { shape: "call", keyed: true },
  "mail.answer": { shape: "call" },
  "mail.subscribe": { shape: "call", keyed: true },
  "mail.unsubscribe": { shape: "call", keyed: true },
  "mail.publish": { shape: "call", keyed: true },
  "name.register": { shape: "call", keyed: true },
  "name.release": { shape: "call", keyed: true },
  "name.lookup": { shape: "call" },
  "name.list": { shape: "call", lists: ["names"], parts: "names" },
  "state.get": { shape: "call" },
  "state.set": { shape: "call", keyed: true },
  "state.delete": { shape: "call", keyed: true },
  "state.list": { shape: "call", lists: ["keys"], parts: "keys" },
  "state.watch": { shape: "call" },
  "blob.open": { shape: "call", keyed: true },
  "blob.write": { shape: "call" },
  "blob.close": { shape: "call", keyed: true },
  "blob.take": { shape: "call", keyed: true },
  "blob.read": { shape: "call" },
  "blob.save": { shape: "call", keyed: true },
  "model.queue": { shape: "call", lists: ["calls"] },
  "audit.read": { shape: "call", lists: ["records"], parts: "records" },
};

export const USER_METHODS = {
  "daemon.info": { shape: "call" },
  "daemon.reload": { shape: "call" },
  "daemon.drain": { shape: "call" },
  "daemon.panic": { shape: "call", lists: ["ended"] },
  "daemon.backup": { shape: "call" },
  "daemon.check": { shape: "call", lists: ["problems"] },
  "daemon.debug": { shape: "call" },
  "run.start": { shape: "call" },
  "run.list": { shape: "call", lists: ["runs"], parts: "runs" },
  "run.get": { shape: "call" },
  "run.wait": { shape: "call" },
  "run.remove": { shape: "call" },
  "run.rename": { shape: "call" },
  "run.prune": { shape: "call", lists: ["removed"] },
  "run.stop": { shape: "call" },
  "run.signal": { shape: "call" },
  "run.restart": { shape: "call" },
  "run.pause": { shape: "call" },
  "run.resume": { shape: "call" },
  "run.update": { shape: "call" },
  "run.stats": { shape: "call" },
  "run.processes": { shape: "call", lists: ["processes"] },
  "run.logs": { shape: "stream" },
  "run.attach": { shape: "session" },
  "run.exec": { shape: "session" },
  "run.copy_in": { shape: "session" },
  "run.copy_out": { shape: "session" },
  "run.diff": { shape: "stream" },
  "run.apply": { shape: "stream" },
  "home.list": { shape: "call", lists: ["homes"] },
  "home.remove": { shape: "call" },
  "agent.get": { shape: "call", lists: ["grants", "budgets"] },
  "agent.list": { shape: "call", lists: ["children"], parts: "children" },
  "agent.tree": { shape: "call", lists: ["children"], parts: "children" },
  "manifest.add": { shape: "call", keyed: true },
  "manifest.list": { shape: "call", lists: ["manifests"], parts: "manifests" },
  "manifest.remove": { shape: "call", keyed: true, lists: ["removed"] },
  "grant.list": { shape: "call", lists: ["grants"], parts: "grants" },
  "grant.give": { shape: "call", keyed: true },
  "grant.derive": { shape: "call", keyed: true },
  "grant.revoke": { shape: "call", keyed: true, lists: ["revoked"] },
  "grant.check": { shape: "call" },
  "budget.get": { shape: "call", lists: ["budgets"] },
  "budget.reserve": { shape: "call", keyed: true },
  "budget.settle": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.release": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.charge": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.raise": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.reset": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.set": { shape: "call", keyed: true, lists: ["budgets"] },
  "budget.list": { shape: "call", lists: ["budgets"], parts: "budgets" },
  "budget.report": { shape: "call", lists: ["days"], parts: "days" },
  "budget.top": { shape: "call", lists: ["spenders"] },
  "mail.boxes": { shape: "call", lists: ["mailboxes"], parts: "mailboxes" },
  "mail.read": { shape: "call", lists: ["messages"], parts: "messages" },
  "mail.post": { shape: "call", keyed: true },
  "mail.dead": { shape: "call", lists: ["letters"], parts: "letters" },
  "mail.requeue": { shape: "call", keyed: true },
  "mail.discard": { shape: "call", keyed: true },
  "name.reserve": { shape: "call", keyed: true },
  "name.query": { shape: "call", lists: ["names"], parts: "names" },
  "name.remove": { shape: "call", keyed: true },
  "model.queue": { shape: "call", lists: ["calls"] },
  "model.list": { shape: "call", lists: ["models"] },
  "model.prices": { shape: "call", lists: ["prices"] },
  "model.test": { shape: "call" },
  "model.top": { shape: "call", lists: ["runs"] },
  "audit.read": { shape: "call", lists: ["records"], parts: "records" },
  "blob.upload": { shape: "call", keyed: true },
  "blob.part": { shape: "call" },
  "blob.finish": { shape: "call", keyed: true },
  "blob.fetch": { shape: "call" },
  "state.query": { shape: "call", lists: ["keys"], parts: "keys" },
  "state.read": { shape: "call" },
  "state.write": { shape: "call", keyed: true },
  "state.remove": { shape: "call", keyed: true },
  "audit.query": { shape: "stream" },
  "event.follow": { shape: "stream" },
};

export const STANDARD = {"id":"","name":"","command":null,"env":["HOME=/home/agent","LANG=C.UTF-8","PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],"dir":"/workspace","user":{"name":"agent","uid":1000,"gid":1000,"home":"/home/agent"},"limits":{"memory_bytes":1073741824,"memory_swap_bytes":1073741824,"pids":512,"rlimits":[{"name":"core","soft":0,"hard":0},{"name":"nice","soft":0,"hard":0},{"name":"nofile","soft":4096,"hard":4096},{"name":"rtprio","soft":0,"hard":0}],"stop_grace_ns":2000000000,"disk_bytes":1073741824,"shm_bytes":67108864},"files":{},"seccomp":{"profile":"standard"},"network":"none","egress":{"limits":{"connections":1024,"per_second":200}},"policy":{"name":"standard","sha256":"f43e02f4aa9c78ca37ce9f860e75bc081983712d17f79a021e866e6c80d9162a"}};
