import type { AgentMethods, BlobResult, Grant, Mail, MailSendParams, NoteParams, StatePath } from "./api.js";
import type { CallOptions } from "./cloved.js";

export interface AgentOptions {
  /** Of the socket; by default CLOVE_AGENT_SOCKET, or where clove puts it. */
  path?: string;
  /** Milliseconds for which a call is repeated; 15000 by default. */
  patience?: number;
  /** Milliseconds to wait for an answer; by default there is no limit. */
  timeout?: number;
  /** The most for calls, 8 by default; clove lets an agent have 32 in all. */
  connections?: number;
}

/**
 * Everything that an agent may call.
 *
 * A call whose connection is lost, or that clove cannot serve at the moment, is repeated with the
 * same key for as long as patience says. What was done is not done again.
 */
export class Agent {
  constructor(options?: AgentOptions);
  readonly path: string;
  /**
   * Calls a method by its name, also one that this package does not know. Such a one is repeated
   * only if the call has a key.
   */
  call(method: string, params?: object, options?: CallOptions): Promise<any>;
  /** All grants, oldest first: as many calls of grant.list as that takes. */
  grants(): AsyncGenerator<Grant, void, void>;
  /**
   * Sends a message that asks, waits for its answer, and takes that out of the mailbox. within are
   * milliseconds, after which the question can be received no more and the wait ends with
   * NotFoundError; by default both last.
   */
  request(message: Omit<MailSendParams, "asks" | "expires_ms"> & { within?: number }, options?: CallOptions): Promise<Mail>;
  /**
   * Makes a blob of content, of 1 byte to 64 MiB, which mail.send and state.set name by its sha256. A text is
   * taken as UTF-8.
   */
  upload(content: string | Uint8Array, options?: CallOptions): Promise<BlobResult>;
  /**
   * The content of a blob of a message in the mailbox, of an own key, or of an own upload. at is the key that has
   * it, of a scope that runs share.
   */
  download(sha256: string, options?: CallOptions & { at?: StatePath }): Promise<Buffer>;
  /**
   * The notifications, for `for await`. With timeout, the iteration ends after so many
   * milliseconds without one.
   */
  listen(options?: CallOptions): Notifications;
  /** Throws UnreachableError if there is no socket. */
  check(): Promise<void>;
  /** Ends all connections, and iterations over notifications. */
  close(): void;
}

export interface Agent extends AgentMethods {}

/** Makes an agent. UnreachableError: there is no socket. */
export function connect(options?: AgentOptions): Promise<Agent>;

/** A notification. A newer clove may send others, with an object as it came. */
export type Note = { [Method in keyof NoteParams]: { method: Method; params: NoteParams[Method] } }[keyof NoteParams];

/**
 * Up to 256 notifications wait while no connection listens. If there were more, the oldest are
 * gone, and the first one is agent.lost with their number.
 */
export interface Notifications extends AsyncIterable<Note> {
  /** Ends the iterations. */
  close(): void;
}
