import type { ClovedMethods, ExecResult, LogLine, LogsParams, RunResult, SessionOutput, Spec, User } from "./api.js";

export interface CallOptions {
  /** Milliseconds to wait for the answer, or for the next notification; by default there is no limit. */
  timeout?: number;
  /** Ends the call, and what clove does for it, when it aborts. The call then throws its reason. */
  signal?: AbortSignal;
}

/** A call that notifies before it answers: `for await` gives the notifications. */
export class Stream<Note, Answer> implements AsyncIterableIterator<Note> {
  /** The answer, when the notifications have ended. */
  readonly result: Answer | undefined;
  /** Sends the request, which otherwise the first notification does. */
  open(): Promise<unknown>;
  next(): Promise<IteratorResult<Note, undefined>>;
  return(): Promise<IteratorResult<Note, undefined>>;
  [Symbol.asyncIterator](): this;
  /** Waits for the answer and returns it. */
  end(): Promise<Answer>;
  /** Ends the connection, and with it the call. */
  close(): void;
}

/** A piece of what a process wrote. */
export type Output = Omit<SessionOutput, "data"> & { data: Buffer };

/** What an input may come from. */
export type Source = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** A stream in both directions: what a process writes is iterated over, and send writes to it. */
export class Session<Answer> extends Stream<Output, Answer> {
  /** Sends input. It waits while the process reads none. */
  send(data: string | Uint8Array): Promise<void>;
  /** Ends the input. */
  closeInput(): Promise<void>;
  /** Says how large the caller's terminal is. */
  resize(rows: number, columns: number): Promise<void>;
  /** Leaves an attached run, which goes on. */
  detach(): Promise<void>;
  /** Sends all of an input, and its end. A source that fails ends the session. */
  feed(source: Source): Promise<void>;
}

/** What a start says besides the fields of a spec: STANDARD has those that are absent. */
export interface StartOptions extends Partial<Spec> {
  /** The program inside, with its arguments. */
  command: string[];
  /** By default the program's, with random digits. */
  name?: string;
  /** What else the run has, in place of STANDARD. */
  spec?: Spec;
}

export interface ExecOptions extends CallOptions {
  input?: Source;
  env?: Record<string, string>;
  /** Its working directory; by default the agent's. */
  dir?: string;
  /** By default the agent's. */
  user?: User;
  /** How many bytes it may write to each stream: 10 MiB. Beyond, it is ended with a RangeError. */
  limit?: number;
}

/** How a command ended. */
export interface Executed {
  exitCode: number;
  stdout: Buffer;
  stderr: Buffer;
  /** Why it was not executed, if it was not. */
  failure?: ExecResult["failure"];
}

/**
 * Everything that a user may call. Each call has a connection of its own, and none is repeated:
 * after an UnreachableError, it may have been done or not.
 */
export class Cloved {
  /** path is the socket's; by default as the command clove finds it. */
  constructor(options?: { path?: string });
  readonly path: string;
  /** Starts a run in the background, as run.start does. */
  start(options: StartOptions, call?: CallOptions): Promise<RunResult>;
  /** Runs one more command in a live run, to its end. */
  exec(run: string, command: string[], options?: ExecOptions): Promise<Executed>;
  /** Unpacks a tar archive in a folder of a live run; the agent owns the files. */
  copyIn(run: string, folder: string, archive: Source, options?: CallOptions): Promise<void>;
  /** A file or folder of a live run as the pieces of a tar archive. */
  copyOut(run: string, path: string, options?: CallOptions): AsyncGenerator<Buffer, void, void>;
  /** The lines of a run's log. */
  logs(run: string, choice?: Omit<LogsParams, "run" | "many">, options?: CallOptions): AsyncGenerator<LogLine, void, void>;
}

export interface Cloved extends ClovedMethods {}
