export { Agent, AgentOptions, Note, Notifications, connect } from "./agent.js";
export * from "./api.js";
export { CallOptions, Cloved, ExecOptions, Executed, Output, Session, Source, StartOptions, Stream } from "./cloved.js";
export { CloveError, UnansweredError, UnreachableError } from "./errors.js";
