export { Agent, connect } from "./agent.js";
export * from "./api.js";
export { Cloved, Session, Stream } from "./cloved.js";
export { CloveError, UnansweredError, UnreachableError } from "./errors.js";
