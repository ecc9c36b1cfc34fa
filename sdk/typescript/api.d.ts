// Generated from the table of methods by make generate.

import { CloveError } from "./errors.js";
import type { CallOptions, Session, Stream } from "./cloved.js";

/** A time as RFC 3339 writes it. */
export type Time = string;

/** Bytes as base64. */
export type Base64 = string;

/** The parameters of a method that has none. */
export type NoParams = { [key: string]: never };

/** The version of the contract. */
export const VERSION: number;

/** The most bytes of a line on the agent socket. */
export const MAX_LINE: number;

/** What a client needs of a method. */
export interface Row {
  shape: "call" | "stream" | "session";
  /** It changes something, and takes a key. */
  keyed?: boolean;
  /** The lists of its answer that are always there. */
  lists?: string[];
  /** The list that comes in parts. */
  parts?: string;
}

/** The methods of the agent socket. */
export const AGENT_METHODS: { [method: string]: Row };

/** The methods of cloved's socket. */
export const USER_METHODS: { [method: string]: Row };

/** A run as the level standard has it, without command and name. */
export const STANDARD: Spec;

/** The errors by their word. */
export const ERRORS: { [word: string]: typeof CloveError };

/** The line is not JSON, or nests too deeply. */
export class ParseError extends CloveError {}

/** The object is not a request. */
export class RequestError extends CloveError {}

/** There is no such method. */
export class MethodError extends CloveError {}

/** The parameters are wrong: change them. */
export class InvalidError extends CloveError {}

/** An internal error occurred. */
export class InternalError extends CloveError {}

/** There is no such run, file or command; also for what the caller may not see. */
export class NotFoundError extends CloveError {}

/** The name is taken, or the run's state forbids it. */
export class ConflictError extends CloveError {}

/** This host cannot enforce the limit. */
export class UnenforceableError extends CloveError {}

/** The caller may not do that. */
export class DeniedError extends CloveError {}

/** Another process holds it, or there are too many: try again. */
export class BusyError extends CloveError {}

/** The message is larger than the limit. */
export class TooLargeError extends CloveError {}

/** The request was cancelled. */
export class CancelledError extends CloveError {}

/** Cloved is shutting down; agents continue to run. */
export class DrainingError extends CloveError {}

/** The disk is full or fails; nothing was changed. */
export class StorageError extends CloveError {}

/** A session needs a connection of its own. */
export class SessionError extends CloveError {}

/** Nothing of the amount is left, or less than was asked for. */
export class BudgetError extends CloveError {}

/** Names one run: an id, the beginning of exactly one, a name of the caller's, or UID/NAME. */
export interface RunParams {
  run: string;
}

/** Give a task to another run. */
export interface HandoffParams {
  /**
   * a name or id as of mail.send: a run below this one, or one of the same user and namespace that
   * a grant of kind send covers
   */
  to: string;
  /** a text or any other JSON, at most 48 KiB */
  task: unknown;
  /** at most 8 */
  grants?: HandoffGrant[];
  /** by budget.reserve; all of it is handed over */
  reservation?: string;
  /** of the offer; absent: in an hour; at most in a day */
  expires?: Time | Date;
  /** the same key gets the same answer again */
  key?: string;
}

/** Name an offer. */
export interface AcceptParams {
  offer: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Name an offer of the run's own. */
export interface WithdrawParams {
  offer: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Ask for the offers to a run. */
export interface OfferListParams {
  /** answer when there is one */
  wait?: boolean;
  after?: string;
}

/**
 * Starts a child from a manifest, of which each field makes it narrower. What is absent is the
 * manifest's.
 */
export interface SpawnParams {
  /** a name, which a spawn grant of the caller's covers */
  manifest: string;
  /** what the caller calls it, beside its id; no other live child has the same */
  name?: string;
  /** arguments behind the manifest's; of a model one, the prompt */
  args?: string[];
  /** KEY=VALUE */
  env?: string[];
  /** of a model: behind the manifest's */
  instructions?: string;
  limits?: SpawnLimits;
  /** none: no network at all */
  network?: string;
  /** targets that are denied as well */
  deny?: string[];
  /** KIND:PATTERN[:RIGHTS], a part of the manifest's, or none; absent: all */
  grants?: string[];
  /** DIMENSION=AMOUNT, no more than the manifest's */
  budgets?: string[];
  /** copied before it starts */
  files?: SpawnFile[];
  /** for the people who are asked about it, at most 1024 bytes */
  why?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a descendant by its id, or a child by the name that its parent gave it. */
export interface ChildParams {
  child: string;
}

/** Sends a descendant a signal, or ends it. */
export interface ChildSignalParams {
  child: string;
  /** TERM, KILL, INT, USR1, USR2, STOP, CONT, or POLICY or BUDGET, which end it with that status */
  signal: string;
  /** in the audit log, and of TERM, KILL, POLICY and BUDGET in its record */
  reason?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for runs below one. */
export interface ChildListParams {
  run: string;
  after?: string;
}

/** What a run gives to what started it. */
export interface ResultParams {
  /** JSON of at most 48 KiB */
  result: unknown;
  /** the same key gets the same answer again */
  key?: string;
}

/** Ask for what a descendant has changed in its files, as files below a path of the caller's own. */
export interface CollectParams {
  /** id or name */
  child: string;
  /** inside; at it must be nothing, or an empty folder */
  path: string;
  /** inside of the child, as run.diff lists them: only these, and what is below them */
  paths?: string[];
  /** the same key gets the same answer again */
  key?: string;
}

/**
 * Ask for a file or folder of another run's kept folder, as files below a path of the caller's
 * own.
 */
export interface FetchParams {
  /** the name of a live run of the namespace */
  keeper: string;
  /** inside of it: a folder that it keeps (Files.Keep), or what is below one */
  from: string;
  /** inside of the caller; at it must be nothing, or an empty folder */
  path: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Ask people to write an agent's changes back to its workspace on the host. */
export interface OwnApplyParams {
  /** as in run.apply */
  paths?: string[];
  /** people see it; at most 1024 bytes */
  why?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Lists the tools that a run may call. */
export interface ToolListParams {
  run: string;
  /** next of the part before */
  after?: string;
}

/** Calls a tool. */
export interface ToolCallParams {
  run: string;
  tool: string;
  /** an object of JSON, of at most 48 KiB; absent: {}. */
  arguments?: unknown;
  /** bounds the call in milliseconds; absent: the tool's own bound, which it cannot pass. */
  timeout_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names the run, and where the last answer ended. */
export interface GrantListParams {
  run: string;
  after?: string;
}

/** Narrows a grant. */
export interface GrantDeriveParams {
  run: string;
  /** the id of a grant that the run holds */
  from: string;
  /** the run that gets it, one below this run; empty: the run itself */
  to?: string;
  /** KIND:PATTERN[:RIGHTS], covered by from */
  grant: string;
  expires?: Time | Date;
  uses?: number;
  reason?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Takes a grant back, with everything that was derived from it. */
export interface GrantRevokeParams {
  run: string;
  id: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks whether a run may do one thing. */
export interface GrantCheckParams {
  run: string;
  /** KIND:PATTERN[:RIGHTS] */
  what: string;
}

/** Sets amounts aside. */
export interface BudgetReserveParams {
  run: string;
  /** by dimension */
  amounts: { [key: string]: number };
  /** the same key gets the same answer again */
  key?: string;
}

/** Says what was used of a reservation; the rest is free again. */
export interface BudgetSettleParams {
  run: string;
  reservation: string;
  amounts: { [key: string]: number };
  /** the same key gets the same answer again */
  key?: string;
}

/** Frees a reservation. */
export interface BudgetReleaseParams {
  run: string;
  reservation: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Records what was used without a reservation. */
export interface BudgetChargeParams {
  run: string;
  amounts: { [key: string]: number };
  /** the same key gets the same answer again */
  key?: string;
}

/** Sends a message. */
export interface MailSendParams {
  /** a registered name, or the name or the id of a run, in the sender's namespace; or parent */
  to: string;
  /** at most 48 KiB; null beside a blob: that alone */
  body: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** 0 to 9; higher ones are received first */
  priority?: number;
  /** from now; 0: never */
  expires_ms?: number;
  /** absent: a new one, or that of the message it answers */
  trace?: string;
  /** mail.answer waits for what the receiver replies */
  asks?: boolean;
  /** while the mailbox is full, wait so long for place in it; 0: not at all */
  wait_ms?: number;
  /** start a run for the name if none holds it */
  wake?: boolean;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for messages of the caller's mailbox. */
export interface MailReceiveParams {
  /** the id of the last one that the caller has; absent: from the first that is not acknowledged */
  after?: string;
  /** 1 to 64; absent: 1 */
  most?: number;
  /** then the call is refused: not found, rule within; 0: it waits without end */
  within_ms?: number;
}

/** Takes messages out of the caller's mailbox. */
export interface MailAckParams {
  /** 1 to 64 */
  ids: string[];
  /** why; they become dead letters */
  reject?: string;
  /** done with it, each with its own rights and costs: all that is named, or nothing. at most 16 */
  then?: ThenCall[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Answers a message that asks. */
export interface MailReplyParams {
  /** of the message, which is in the caller's mailbox or was acknowledged by the same call */
  id: string;
  /** as in MailSendParams */
  body: unknown;
  blob?: string;
  /** take the message out of the mailbox */
  ack?: boolean;
  /** the same key gets the same answer again */
  key?: string;
}

/** Waits for the answer to a message that the caller sent. */
export interface MailAnswerParams {
  id: string;
  /** then the call is refused: not found, rule within; 0: it waits without end */
  within_ms?: number;
}

/** Names a topic of the caller's namespace. */
export interface MailTopicParams {
  topic: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Sends a message to each run that has subscribed to a topic. */
export interface MailPublishParams {
  topic: string;
  /** as in MailSendParams */
  body: unknown;
  blob?: string;
  /** as in MailSendParams */
  priority?: number;
  /** from now; 0: never */
  expires_ms?: number;
  /** absent: a new one */
  trace?: string;
  /** refuse all if the mailbox of one is full */
  fail_on_full?: boolean;
  /** the same key gets the same answer again */
  key?: string;
}

/** Adds a job to a queue of the caller's namespace. */
export interface JobAddParams {
  queue: string;
  /** at most 48 KiB; null beside a blob: that alone */
  body: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** 0 to 9; higher ones are taken first */
  priority?: number;
  /** from now; it is not taken before */
  delay_ms?: number;
  /** from now; then it is dead, also while a run holds it; 0: never */
  deadline_ms?: number;
  /** how often it is tried; absent: as the queue says */
  attempts?: number;
  /** absent: a new one */
  trace?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Waits for a job of a queue of the caller's namespace. */
export interface JobClaimParams {
  queue: string;
  /** then the call is refused: not found, rule within; 0: it waits without end */
  within_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a job that the caller holds, has added, or, for users, owns. */
export interface JobParams {
  id: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Ends a job that the caller holds: it is done. */
export interface JobCompleteParams {
  id: string;
  /** at most 4 KiB */
  result?: unknown;
  /** SHA-256 of one that the caller may read: the result, or beside it */
  blob?: string;
  /** done with it, each with its own rights and costs: all that is named, or nothing. at most 16 */
  then?: ThenCall[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Gives a job that the caller holds back. */
export interface JobFailParams {
  id: string;
  why: string;
  /** it is not tried again */
  dead?: boolean;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a job that is looked at. */
export interface JobGetParams {
  id: string;
}

/** Asks for the jobs that the caller holds. */
export interface JobListParams {
}

/**
 * Makes a queue of the caller's own, or replaces the settings of one. Jobs that are there keep
 * theirs.
 */
export interface QueueOpenParams {
  queue: string;
  /** that clove starts for each job, as a child of the caller's; the job is its stdin */
  manifest?: string;
  /** absent: 1 with a manifest, and else as many as there are */
  concurrency?: number;
  /** absent: 3 */
  attempts?: number;
  /** absent: 1000 */
  backoff_ms?: number;
  /** absent: 60000 */
  lease_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a queue of the caller's own. */
export interface QueueCloseParams {
  queue: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Gives the caller's run a name, or other tags for one that it has. */
export interface NameRegisterParams {
  name: string;
  /** at most 8 */
  tags?: string[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a name of the caller's namespace. */
export interface NameParams {
  name: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a name of the caller's namespace. */
export interface NameLookupParams {
  name: string;
}

/** Chooses names of the caller's namespace. Empty fields choose all. */
export interface NameListParams {
  /** with which a name begins */
  prefix?: string;
  /** of the reservation or of a holder */
  tag?: string;
  /** where the last answer ended */
  after?: string;
}

/** Chooses questions of the agent's own. */
export interface ApprovalOwnParams {
  /** where the last answer ended */
  after?: string;
}

/** Names a question of the agent's own. */
export interface ApprovalCancelParams {
  id: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for a key. */
export interface StateGetParams {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** parts with / between them: plans/today */
  path: string;
}

/** Sets a key. */
export interface StateSetParams {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** parts with / between them: plans/today */
  path: string;
  /** the version that there must be, 0: none; absent: any */
  if_version?: number;
  /** at most 48 KiB; null beside a blob: that alone */
  value: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** from now; 0: never */
  expires_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Removes a key. */
export interface StateDeleteParams {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** parts with / between them: plans/today */
  path: string;
  /** the version that there must be, 0: none; absent: any */
  if_version?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for the keys at a path and below it. */
export interface StateListParams {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** absent: all keys of the scope */
  path?: string;
  /** next of the answer before, to go on behind it */
  after?: string;
}

/** Waits for a change of a key. */
export interface StateWatchParams {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** parts with / between them: plans/today */
  path: string;
  /** the one that the caller knows; 0: it knows of none */
  version: number;
  /** then the call is refused: not found, rule within; 0: it waits without end */
  within_ms?: number;
}

/** Begins an upload. */
export interface BlobOpenParams {
  /** of the whole blob, 1 to 64 MiB */
  bytes: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Writes a part of an upload. */
export interface BlobWriteParams {
  upload: string;
  /** of the part; not behind the end of what is written */
  offset: number;
  /** at most 36 KiB, as base64 */
  data: Base64;
}

/** Ends an upload. */
export interface BlobCloseParams {
  upload: string;
  /** what the digest must be; absent: anything */
  sha256?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Makes a blob of a file. */
export interface BlobTakeParams {
  /** absolute, as the agent sees it */
  path: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for a part of a blob. */
export interface BlobReadParams {
  /** its SHA-256 */
  blob: string;
  /**
   * the key that refers to it, of a scope that runs share; absent: a message in the caller's
   * mailbox does, a key of its own run, a job that it holds, or an upload of its own.
   */
  at?: StatePath;
  /** the id of one that refers to it and that the caller holds or has added; not with at. */
  job?: string;
  /** of the part */
  offset?: number;
}

/** Writes a blob to a file. */
export interface BlobSaveParams {
  /** its SHA-256 */
  blob: string;
  /**
   * the key that refers to it, of a scope that runs share; absent: a message in the caller's
   * mailbox does, a key of its own run, a job that it holds, or an upload of its own.
   */
  at?: StatePath;
  /** the id of one that refers to it and that the caller holds or has added; not with at. */
  job?: string;
  /** absolute, as the agent sees it; nothing may be there */
  path: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** An event of the agent's own. */
export interface EventAppendParams {
  /** agent. and a name of the agent's: lower-case letters, digits and _.- */
  kind: string;
  /** JSON of at most EventBodyMost bytes */
  body?: unknown;
  /**
   * what the event follows from: the id of an event, of a call, or of a message in the agent's
   * mailbox. Absent: nothing else than what the run began with.
   */
  causation?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks from what something follows, or what follows from it. */
export interface TraceParams {
  /** of an event, a call, a message or a run */
  id: string;
  /** at most so many steps, 1 to 100; absent: 10 */
  depth?: number;
  /** what follows from it, at most 100 records; absent: from what it follows */
  down?: boolean;
}

/** Name a namespace, and where the last answer ended. */
export interface AuditReadParams {
  run: string;
  /** with those below it */
  namespace: string;
  after?: number;
}

/** Turns the drain on or off. */
export interface DrainParams {
  on: boolean;
}

/** Ends all agents, or lets runs start again. */
export interface PanicParams {
  reason?: string;
  clear?: boolean;
}

/** Names the file that the copy of kernel.db is written to. */
export interface BackupParams {
  /** absolute; it must not exist */
  file: string;
}

/** Chooses one part. */
export interface DebugParams {
  part: string;
}

/**
 * Asks for a run. The spec is complete: cloved adds no defaults, and gives it an id where it has
 * none.
 */
export interface StartParams {
  spec: Spec;
  /** how long it waits first, in nanoseconds. */
  delay_ns?: number;
  /**
   * the caller's span (W3C trace context), for a cloved that traces. One that is malformed is
   * ignored.
   */
  traceparent?: string;
  /** the window of a foreground run's caller. */
  size?: SessionSize;
}

/** Chooses runs. */
export interface ListParams {
  /** also those that have ended */
  all?: boolean;
  /** at most so many; 0: as many as one answer holds */
  limit?: number;
  /** true: only what a table shows, and of long commands the beginning */
  brief?: boolean;
  /** next of the answer before, to go on behind it */
  after?: string;
}

/** Names a run to forget. */
export interface RemoveParams {
  run: string;
  force?: boolean;
}

/** Gives a run a new name. */
export interface RenameParams {
  run: string;
  name: string;
}

/** Ends a run: TERM, its grace, then KILL. */
export interface StopParams {
  run: string;
  /** in nanoseconds; absent: the run's own. */
  grace_ns?: number;
}

/** Sends the agent a signal of the Linux kernel's, or ends it by policy or for a budget. */
export interface SignalParams {
  run: string;
  signal: number;
  /** clove's own signal, with signal 0: the run ends with status policy-kill. */
  policy?: boolean;
  /** clove's own signal, too: the run ends with status budget, in place of policy. */
  budget?: boolean;
  /** Reason, of policy and budget only, is in the record and in the audit log; absent: who asked. */
  reason?: string;
}

/** Ends a run and starts it again. */
export interface RestartParams {
  run: string;
  /** in nanoseconds; absent: the run's own. */
  grace_ns?: number;
  /** lets it begin with a new layer: what the agent wrote is lost. */
  fresh?: boolean;
}

/** Changes limits and rules of a live run: all that is named, or nothing. */
export interface UpdateParams {
  run: string;
  update: Update;
}

/** Chooses lines of a run's log. */
export interface LogsParams {
  run: string;
  since?: Time | Date;
  /** only the last so many; absent: all */
  tail?: number;
  /** go on until the run has ended */
  follow?: boolean;
  /**
   * the number of the last line that the caller has: only later ones are given. Where some of
   * those are gone, a line with lost_lines comes first.
   */
  after?: number;
  /**
   * that line's offset. Without it lost_bytes of lines that rotation dropped behind it is not
   * known, and absent.
   */
  after_offset?: number;
  /** asks for notifications with lines, as many as are there, in place of line. */
  many?: boolean;
  /**
   * asks for what the run's calls of models said and got. Only a run with model_log has it. Each
   * call is a line of stream clove, and the lines of request and answer.
   */
  models?: boolean;
}

/** Joins a run's streams. Only a run that keeps its input open takes any. */
export interface AttachParams {
  run: string;
  size?: SessionSize;
  /**
   * makes it the session that a foreground run was started for: nothing is lost in it, and the run
   * ends with it.
   */
  foreground?: boolean;
}

/**
 * Runs one more process in a live run's sandbox. When the session ends before it, and at a
 * session.signal of TERM, it gets TERM, the run's grace, and KILL together with all that it
 * started.
 */
export interface ExecParams {
  run: string;
  exec: Exec;
  /** it reads the session's input; else the end of a file */
  stdin?: boolean;
  /** of its terminal */
  size?: SessionSize;
  /**
   * answers when it executes, and the session ends without it. It has no input, no terminal, and
   * its output is dropped.
   */
  detach?: boolean;
}

/**
 * Names a path inside a run's sandbox, for run.copy_in a live run's. The session carries a tar
 * archive: as input of run.copy_in, which unpacks it in the folder, as output "tar" of
 * run.copy_out.
 */
export interface CopyParams {
  run: string;
  path: string;
}

/** Names a run, or lost/ID: a layer that the store has no record of. */
export interface DiffParams {
  run: string;
  /**
   * the canonical path of a directory of the host that takes the place of the workspace; only for
   * lost/ID. Absent: the run's own.
   */
  to?: string;
  /**
   * inside choose the changes of these files, and of all below them, as those of run.apply do;
   * they come with their contents, those of files up to 1 MiB. Absent: all changes, without
   * contents.
   */
  paths?: string[];
  /** asks for them without paths, those of the workspace. */
  contents?: boolean;
  /** leaves the digest out, for which all changed files of the workspace are read. */
  list_only?: boolean;
}

/** Writes a run's workspace back to the host. */
export interface ApplyParams {
  run: string;
  /** as in run.diff. */
  to?: string;
  /**
   * inside choose the changes of these files, and of all below them, with the new folders that
   * hold them. Absent: all. A path that nothing changed is an error.
   */
  paths?: string[];
  /**
   * the one that run.diff gave for what the caller looked at, all or the same paths: where the
   * workspace's changes are others by now, in their contents too, nothing is applied. Absent:
   * apply whatever there is.
   */
  digest?: string;
  /**
   * applies also files with an executed_by, because a program of the host's executes them by
   * itself once they are there, and files with an unknown, because one may. AllowInstructions
   * applies also files with an instructs. Otherwise these are refused, but for the paths inside
   * that allow_executable names, of any of the three.
   */
  allow_executable_config?: boolean;
  allow_instructions?: boolean;
  allow_executable?: string[];
}

/** Names a kept home. */
export interface HomeParams {
  /** its id, or its name where only one of the caller's has it */
  home: string;
}

/** Keeps a resolved manifest for agents that may start it. */
export interface ManifestAddParams {
  /** of the agent in it */
  name: string;
  /** without id */
  spec: Spec;
  /** that the spec refers to */
  files?: ManifestFile[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Says where the last answer ended. */
export interface ManifestListParams {
  after?: string;
}

/** Names manifests of the caller's. */
export interface ManifestNameParams {
  name: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Keeps a tool of the caller's. */
export interface ToolAddParams {
  tool: Definition;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a tool of the caller's, or one that is built in. */
export interface ToolShowParams {
  tool: string;
}

/** Says where the last answer ended. */
export interface ToolKeptParams {
  after?: string;
}

/** Names a tool of the caller's. */
export interface ToolNameParams {
  tool: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Gives a run a grant. */
export interface GrantGiveParams {
  run: string;
  /** KIND:PATTERN[:RIGHTS] */
  grant: string;
  expires?: Time | Date;
  uses?: number;
  reason?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Changes what is granted to a run by the amounts. */
export interface BudgetRaiseParams {
  run: string;
  amounts: { [key: string]: number };
  /** the same key gets the same answer again */
  key?: string;
}

/** Sets what is used back to zero. */
export interface BudgetResetParams {
  run: string;
  dimensions: string[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Sets limits of a user, a namespace or a name, or what was used of them back to zero. */
export interface BudgetSetParams {
  /** UID, UID/ns:NAMESPACE or UID/name:NAME; for reset alone also UID/provider:NAME */
  account: string;
  /** DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT] */
  limits?: string[];
  /** with limits: end, pause or refuse; empty: end */
  at_end?: string;
  /** dimensions of which nothing counts as used any more */
  reset?: string[];
  /** the same key gets the same answer again */
  key?: string;
}

/** Chooses accounts. */
export interface BudgetListParams {
  /** with all below it; empty: the caller's own, of root all */
  account?: string;
  /** next of the answer before */
  after?: string;
}

/**
 * Chooses days of UTC, written as 2026-11-23. Empty: the first and the last of which there are
 * sums.
 */
export interface BudgetReportParams {
  from?: string;
  /** included */
  to?: string;
  /** next of the answer before */
  after?: string;
}

/** Chooses among the runs that spend. */
export interface BudgetTopParams {
  /** empty: all */
  dimension?: string;
  /** runs of each dimension, at most 100; 0: 10 */
  limit?: number;
}

/** Chooses mailboxes. Empty fields choose all that the caller may see. */
export interface MailBoxesParams {
  owner?: number;
  /** where the last answer ended */
  after?: string;
}

/** Names a mailbox whose messages are read. */
export interface MailReadParams {
  owner?: number;
  /** a run's name or id, a reserved name, or the id of a mailbox */
  mailbox: string;
  /** where the last answer ended */
  after?: string;
}

/** Sends a message of a user's. */
export interface MailPostParams {
  /** of the receiver; absent: the caller; only root names another */
  owner?: number;
  /** of a registered name */
  namespace?: string;
  /** a registered name, or a run's name or id */
  to: string;
  /** at most 48 KiB; null beside a blob: that alone */
  body: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** 0 to 9; higher ones are received first */
  priority?: number;
  /** from now; 0: never */
  expires_ms?: number;
  /** start a run for the name if none holds it */
  wake?: boolean;
  /** the same key gets the same answer again */
  key?: string;
}

/** Chooses dead letters. Empty fields choose all that the caller may see. */
export interface MailDeadParams {
  owner?: number;
  /** as in MailReadParams */
  mailbox?: string;
  /** where the last answer ended */
  after?: string;
}

/** Names a dead letter. */
export interface MailLetterParams {
  id: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Keeps a name for runs that hold it, also while none does. */
export interface NameReserveParams {
  /** absent: the caller; only root names another */
  owner?: number;
  namespace?: string;
  name: string;
  tags?: string[];
  /**
   * a manifest of the owner's and of the namespace, of which mail with wake starts a run; empty:
   * none.
   */
  manifest?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Chooses names of users' namespaces. Empty fields choose all that the caller may see. */
export interface NameQueryParams {
  owner?: number;
  /** exactly this one; the empty one is the owner's own */
  namespace?: string;
  prefix?: string;
  tag?: string;
  after?: string;
}

/** Names a name of a user's. */
export interface NameRemoveParams {
  /** absent: the caller; only root names another */
  owner?: number;
  namespace?: string;
  name: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Make a secret of the caller's. */
export interface SecretSetParams {
  name: string;
  /**
   * one line of printable ASCII without spaces, of 8 to 8192 bytes; of terms with ssh a private
   * key, and of terms without a host any text of as many. No answer and no log has it.
   */
  value: string;
  terms: Terms;
  /** how many requests may carry it; 0: any number */
  uses?: number;
  /** absent: never */
  expires?: Time | Date;
}

/** Give a secret another value. Runs that use it get that with their next request. */
export interface SecretRotateParams {
  name: string;
  value: string;
}

/** Name a secret of the caller's. */
export interface SecretNameParams {
  name: string;
}

/** Choose secrets. */
export interface SecretListParams {
  /** those of all users; root alone may */
  all?: boolean;
}

/** Choose uses of the caller's secrets. */
export interface SecretUsesParams {
  /** empty: of all */
  name?: string;
}

/** A supervisor's: a request of a run that is to carry a secret. */
export interface SecretUseParams {
  run: string;
  secret: string;
  host: string;
  method: string;
  path: string;
}

/** Name a run whose supervisor gets the terms of its secrets, and a process of whose the values. */
export interface SecretOpenParams {
  run: string;
  /** asks for the secrets that the agent is to read in files, absent for those that it never has. */
  plain?: boolean;
}

/**
 * Asks people for a run's supervisor. The same question is asked once: what it is repeated with
 * gets the same approval. A question about a budget has no What and no Rule: it is about the one
 * that has paused the run. One about a secret has the use instead.
 */
export interface ApprovalAskParams {
  run: string;
  kind: string;
  what?: string;
  rule?: string;
  secret?: SecretUseParams;
  /** 0: an hour, and about a budget a day */
  expires_ms?: number;
}

/** Names a yes for one time, which the run's supervisor uses up. */
export interface ApprovalUseParams {
  run: string;
  id: string;
}

/** Names a question by its id, or by as much of its beginning as is unique. */
export interface ApprovalGetParams {
  id: string;
  /** wait until it is not waiting; the id is whole then */
  answered?: boolean;
  /** then the call is refused: not found, rule within; 0: it waits without end */
  within_ms?: number;
}

/** Chooses questions. Empty fields choose all that the caller may see. */
export interface ApprovalListParams {
  state?: string;
  /** name or id */
  run?: string;
  /** where the last answer ended */
  after?: string;
}

/** An answer to a question of a run. */
export interface ApprovalRespondParams {
  run: string;
  id: string;
  /** of what the person has seen: another one is refused */
  digest: string;
  allow: boolean;
  /** how long the answer holds; 0: to the end of the run */
  for_ms?: number;
  /** a yes is for one time, and ends with it */
  once?: boolean;
  /** at most 1024 bytes */
  reason?: string;
  /**
   * says that the run's --on-ask answers, and that its supervisor has checked the proof: for root
   * alone. It is the answer of the run's owner. With fault the proof is wrong: that is recorded,
   * and refused.
   */
  command?: boolean;
  fault?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Adds a job to a queue of a user's. */
export interface JobsAddParams {
  /** absent: the caller; only root names another */
  owner?: number;
  namespace?: string;
  queue: string;
  /** at most 48 KiB; null beside a blob: that alone */
  body: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** 0 to 9; higher ones are taken first */
  priority?: number;
  /** from now; it is not taken before */
  delay_ms?: number;
  /** from now; then it is dead, also while a run holds it; 0: never */
  deadline_ms?: number;
  /** how often it is tried; absent: as the queue says */
  attempts?: number;
  /** absent: a new one */
  trace?: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Chooses jobs. Empty fields choose all that the caller may see. */
export interface JobsListParams {
  owner?: number;
  /** exactly this one; the empty one is the owner's own */
  namespace?: string;
  queue?: string;
  state?: string;
  /** where the last answer ended */
  after?: string;
}

/** Makes a queue of a user's, or replaces the settings of one. Jobs that are there keep theirs. */
export interface QueueAddParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** absent: the manifest's */
  namespace?: string;
  name: string;
  /** that clove starts for each job; the job is its stdin */
  manifest?: string;
  /** absent: 1 with a manifest, and else as many as there are */
  concurrency?: number;
  /** absent: 3 */
  attempts?: number;
  /** absent: 1000 */
  backoff_ms?: number;
  /** absent: 60000 */
  lease_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Chooses queues. Empty fields choose all that the caller may see. */
export interface QueueListParams {
  owner?: number;
  /** exactly this one; the empty one is the owner's own */
  namespace?: string;
  /** where the last answer ended */
  after?: string;
}

/** Names a queue of a user's. */
export interface QueueRemoveParams {
  /** absent: the caller; only root names another */
  owner?: number;
  namespace?: string;
  name: string;
  /** the same key gets the same answer again */
  key?: string;
}

/** Names a model or alias. */
export interface ModelTestParams {
  model: string;
}

/** Begins an upload of a user's. */
export interface BlobUploadParams {
  /** of the blob; absent: the caller; only root names another */
  owner?: number;
  /** of the whole blob, 1 to 64 MiB */
  bytes: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Asks for blobs of users. */
export interface BlobListParams {
  /** absent: the caller's, for root all; only root names another */
  owner?: number;
  /** where the last answer ended */
  after?: string;
}

/** Asks a user's blob for a part. */
export interface BlobFetchParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** its SHA-256 */
  blob: string;
  /** of the part */
  offset?: number;
}

/** Asks for the keys of a scope at a path and below it. */
export interface StateQueryParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** absent: runs that have none */
  namespace?: string;
  /** the scope of this name; absent: that of the namespace */
  name?: string;
  /** absent: all keys of the scope */
  path?: string;
  /** next of the answer before, to go on behind it */
  after?: string;
}

/** Asks for a key of a scope. */
export interface StateReadParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** absent: runs that have none */
  namespace?: string;
  /** the scope of this name; absent: that of the namespace */
  name?: string;
  path: string;
}

/** Sets a key of a scope. */
export interface StateWriteParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** absent: runs that have none */
  namespace?: string;
  /** the scope of this name; absent: that of the namespace */
  name?: string;
  /** the version that there must be, 0: none; absent: any */
  if_version?: number;
  path: string;
  /** at most 48 KiB; null beside a blob: that alone */
  value: unknown;
  /** SHA-256 of one that the caller may read */
  blob?: string;
  /** from now; 0: never */
  expires_ms?: number;
  /** the same key gets the same answer again */
  key?: string;
}

/** Removes a key of a scope. */
export interface StateRemoveParams {
  /** absent: the caller; only root names another */
  owner?: number;
  /** absent: runs that have none */
  namespace?: string;
  /** the scope of this name; absent: that of the namespace */
  name?: string;
  /** the version that there must be, 0: none; absent: any */
  if_version?: number;
  path: string;
  /** the same key gets the same answer again */
  key?: string;
}

/**
 * Choose records of the audit log. Empty fields choose all that the caller may see: root
 * everything, a user what is about its own runs and namespaces.
 */
export interface AuditQueryParams {
  owner?: number;
  /** this one and those below it */
  namespace?: string;
  /** name or id; of one that is gone the id */
  run?: string;
  kind?: string;
  verdict?: string;
  /** inclusive */
  since?: Time | Date;
  /** exclusive */
  until?: Time | Date;
  /** anywhere in the record's line */
  text?: string;
  after?: number;
  /** only the last so many, at most 10000 */
  last?: number;
  /** go on until the request is cancelled */
  follow?: boolean;
}

/** Choose the events. Those of runs that the caller does not own are left out. */
export interface EventParams {
  /**
   * the sequence number of the last event that the caller knows; absent: only what happens from
   * now on. 0 asks for all that is kept.
   */
  after?: number;
  since?: Time | Date;
  /** go on until the request is cancelled */
  follow?: boolean;
  /** only of the run with this name or id */
  run?: string;
  /** only these */
  what?: string[];
}

/** One thing that a run may do. */
export interface Grant {
  id: string;
  /** KIND:PATTERN[:RIGHTS] */
  grant: string;
  holder: string;
  /** uid:NUMBER, or the id of the run that derived it */
  giver: string;
  /** the grant that it was derived from */
  parent?: string;
  created: Time;
  expires?: Time;
  /** absent: not counted */
  uses_left?: number;
  reason?: string;
  /** of kind spawn: of the manifest that it starts */
  digest?: string;
  /**
   * where a rule of the run's network comes from, such as --allow or its policy. It is no grant:
   * it is changed with run.update, and nothing is derived from it. Empty: it is a grant.
   */
  rule?: string;
}

/** One dimension of one account that a run spends from. */
export interface Budget {
  /** whose: UID, UID/ns:PATH, UID/name:NAME, UID/provider:NAME or UID/run:ID */
  account: string;
  dimension: string;
  /** absent: used is counted, and nothing limits it */
  granted?: number;
  reserved: number;
  used: number;
  /** the largest used so far */
  peak: number;
  warn_at?: number;
  /** end, pause or refuse */
  at_end?: string;
  /** hour, day or month, UTC */
  period?: string;
  /** when the period began */
  since?: Time;
  warned?: boolean;
  /**
   * more is used than was granted, of an account above what agents charge all of it, or wanted is
   * set
   */
  spent?: boolean;
  /** the reservation that stopped the run, because less than it is left */
  wanted?: number;
}

/** What an agent is, has and was refused. */
export interface AgentResult {
  id: string;
  name: string;
  /** the user */
  owner: number;
  namespace: string;
  parent?: string;
  state: string;
  /** the first forty; grant.list has all */
  grants: Grant[];
  budgets: Budget[];
  /** calls that were refused since the run began, or cloved did; the audit log has all */
  refused: number;
}

/** Names the offer. */
export interface HandoffResult {
  offer: string;
  /** what goes with the task has changed hands; false: it does when the other run accepts */
  handed: boolean;
}

/** The task with what goes with it. */
export interface AcceptResult {
  task: unknown;
  /** the run that gave it */
  from: string;
  grants?: Grant[];
  /** for budget.settle or budget.release */
  reservation?: string;
}

/** A task that a run may accept. */
export interface Offer {
  id: string;
  /** the run that gives it */
  from: string;
  /** of that run */
  name: string;
  grants?: string[];
  /** of the reservation, by dimension */
  amounts?: { [key: string]: number };
  /** they are this run's already */
  handed?: boolean;
  created: Time;
  expires: Time;
}

/** A part of them, in the order of their ids. */
export interface OfferListResult {
  offers: Offer[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A run that an agent has started, or that is below one. */
export interface Child {
  id: string;
  /** the run's name */
  run: string;
  /** what its parent calls it */
  name?: string;
  parent: string;
  manifest: string;
  digest: string;
  created: Time;
  state: string;
  /** of its end */
  status?: string;
  exit_code?: number;
}

/** The child. It is queued; agent.wait reports also that it could not start. */
export interface SpawnResult {
  child: Child;
}

/** Says who requested a run's stop, and when. */
export interface Stopped {
  /** credentials of the socket's peer (SO_PEERCRED): "uid 1000, process 4711" */
  by: string;
  time: Time;
}

/** An Error as it is stored in a Record. */
export interface Failure {
  step: string;
  message: string;
  /** the system's text for the error number */
  errno?: string;
  hint?: string;
}

/**
 * Names the limit that ended the run. Value and Peak are in the limit's own unit: bytes,
 * milliseconds for clocks, or files. Of a budget Name is the dimension, and the unit is the
 * dimension's.
 */
export interface LimitHit {
  name: string;
  value: number;
  peak?: number;
  /** of a budget that other runs spend from too; empty: it is the run's own. */
  account?: string;
  /**
   * Used, wanted and period are of a budget: what is used of it in its period, and the reservation
   * that did not fit beside that; 0: what was used ended the run.
   */
  used?: number;
  wanted?: number;
  /** hour, day or month; empty: the run's whole life */
  period?: string;
}

/** What one model's calls cost together. */
export interface ModelUse {
  model: string;
  calls: number;
  /** without those read from the provider's cache */
  tokens_in: number;
  tokens_out: number;
  tokens_cached: number;
  /** millionths of a US dollar */
  cost_micros: number;
  /** of calls: without an answer, or with an error */
  failed?: number;
  /** of calls: used more than was reserved for them */
  over?: number;
  /**
   * of calls: their tokens are estimated, at least in part, because the provider did not report
   * them
   */
  estimated?: number;
}

/**
 * What all processes of the agent consumed together. CPUMS excludes what clove's launch had used
 * in the same cgroup before the agent's execve; StartCPUMS is that part. All other figures include
 * the launch.
 */
export interface Usage {
  cpu_ms?: number;
  /** the launch's part, not in CPUMS */
  start_cpu_ms?: number;
  cpu_user_ms?: number;
  cpu_system_ms?: number;
  cpu_throttled_ms?: number;
  memory_peak_bytes?: number;
  /**
   * the peak before the agent's execve. A memory_peak_bytes that is not above it was caused by the
   * launch, not by the agent.
   */
  start_memory_peak_bytes?: number;
  pids_peak?: number;
  io_read_bytes?: number;
  io_write_bytes?: number;
  net_rx_bytes?: number;
  net_tx_bytes?: number;
  /** held by the writable layer at the end */
  disk_bytes?: number;
  /** stdout and stderr together */
  output_bytes?: number;
  /**
   * what clove's model service counted, in the order of the models' names; empty: the agent called
   * none. Charges of the agent itself are in its budget only.
   */
  models?: ModelUse[];
}

/** Counts what the kernel did to the agent. */
export interface Events {
  oom_kill?: number;
  /** forks refused by the pids limit */
  pids_max?: number;
  memory_high?: number;
  cpu_throttled_periods?: number;
}

/** Enforced by the gate and by the broker. Bytes 0 means no limit. */
export interface EgressLimits {
  /** open at once, in and out, UDP flows included */
  connections: number;
  /** new ones; twice as many in a burst */
  per_second: number;
  /** in and out together, over the whole run */
  bytes?: number;
}

/** Counts what went through the gate. */
export interface NetworkUse {
  mode: string;
  /** opened, in and out, UDP flows included */
  connections: number;
  /** open at once */
  connections_peak: number;
  /** connections, flows and names */
  refused: number;
  limits: EgressLimits;
  /** why the network failed during the run; empty: it did not */
  lost?: string;
}

/** The system call of a denial. */
export interface DeniedCall {
  name: string;
  number: number;
  /** the six registers in hexadecimal */
  args: string[] | null;
}

/**
 * One refused target with its count. Everything below Count is of the first time, and empty where
 * it means nothing or cannot be known.
 */
export interface Denial {
  time: Time;
  kind: string;
  /** an address, a call's name, a path, a capability */
  target: string;
  rule: string;
  count: number;
  /** path inside of the program that tried */
  program?: string;
  /** what it was answered: "EPERM" */
  errno?: string;
  /** absent for network */
  call?: DeniedCall;
}

/** What a run asked people, and what it did not need to ask. */
export interface Asked {
  /** that people had to be asked, whatever they are about */
  questions: number;
  /** of these */
  allowed: number;
  denied: number;
  /** without an answer in time */
  expired: number;
  /** connections that waited for an answer */
  held: number;
  /** connections that rules and earlier answers decided, refused ones among them */
  by_rule: number;
}

/** Counts what passed between mail and the agent's standard streams. */
export interface StreamUse {
  /** lines of stdout */
  sent: number;
  /** lines that were not sent: too long, not UTF-8, or no JSON where that is asked for */
  refused?: number;
  /** lines that could not be sent; where the run ended during the wait, the first may have been */
  unsent?: number;
  /** stdout was not read: the receiver's mailbox was full, a budget was spent, or cloved was away */
  waited_ms: number;
  /** messages that were written to stdin */
  received: number;
  /** messages that no line can carry; they are dead letters */
  rejected?: number;
  /** says why nothing more passed; empty: nothing kept it from that. */
  error?: string;
}

/**
 * Names the document that the defaults came from. SHA256, in hex, is the digest of the defaults
 * that it set: two records with the same digest had the same defaults.
 */
export interface Policy {
  name: string;
  sha256: string;
  /**
   * the places in which it allows more than what it extends, each with the document and the
   * reason: "network (research): reads two sites".
   */
  widened?: string[];
  /**
   * the name that the caller gave, where name is PolicyCustom: cloved found that the spec allows
   * more than that policy, or found no such policy.
   */
  claimed?: string;
}

/**
 * A limit of a shadow that the run exceeded. Value and Peak are in the unit of the place: bytes,
 * milliseconds, or a number.
 */
export interface ShadowLimit {
  /** key of a policy document; of a budget budgets.DIMENSION */
  place: string;
  value: number;
  peak: number;
}

/** What a run's shadow would have refused of what the run's own policy allowed. */
export interface ShadowUse {
  policy: Policy;
  /** all that it would have refused, those that are left out too */
  refused: number;
  /** by rule and target, the first first; at most ShadowDenialsMost */
  denials: Denial[] | null;
  /** of refused: of targets for which denials has no space */
  others?: number;
  /** of the shadow's limits and budgets those that were exceeded */
  limits?: ShadowLimit[];
  /** places in which it allows more than the run's own policy: there it says nothing */
  wider?: string[];
  /** places in which it is narrower, and which were not watched */
  unseen?: string[];
}

/**
 * Names the agent's file that a run was started from, as the caller gave it. SHA256, in hex, is
 * the digest of what it said: two runs with the same digest had the same manifest.
 */
export interface Manifest {
  name: string;
  sha256: string;
}

/** The host that the run ran on. */
export interface Host {
  kernel: string;
  /** v2, hybrid, v1 */
  cgroup: string;
}

/** Says how a run ended. A figure that this host cannot supply is nil, never 0. */
export interface Record {
  version: number;
  id: string;
  name: string;
  /** below the owner; empty: the owner's own */
  namespace?: string;
  /** the run whose agent started this one; empty: a person did */
  parent?: string;
  command: string[] | null;
  started: Time;
  ended: Time;
  /** on CLOCK_BOOTTIME, from the agent's start to its end */
  wall_ms: number;
  /**
   * as wall_ms, rounded up: no process of the agent executed after this. The kernel may take
   * longer to free what they held
   */
  executed_ms?: number;
  status: string;
  /** what clove run exits with */
  exit_code: number;
  /** "SIGKILL", null when none */
  signal: string;
  /** set where a user requested the stop, even if the run ended by itself meanwhile */
  stopped?: Stopped;
  error?: Failure;
  limit?: LimitHit;
  usage: Usage;
  events: Events;
  /** absent without a gate */
  network?: NetworkUse;
  denials: Denial[] | null;
  /** absent where people are asked nothing */
  asked?: Asked;
  /** absent where mail has no part in them */
  streams?: StreamUse;
  /** absent without a shadow */
  shadow?: ShadowUse;
  /** control to mechanism, for example "memory": "cgroup1" */
  enforced: { [key: string]: string } | null;
  unenforced: string[] | null;
  /** those that the agent could read; absent: it used them without that, or had none. */
  readable_secrets?: string[];
  /** where the defaults came from */
  policy: Policy;
  /** the agent's file that it was started from */
  manifest?: Manifest;
  host: Host;
}

/** How a descendant ended. */
export interface ChildEnd {
  child: Child;
  /** without its command */
  record: Record;
  /** the end of what it wrote to stdout and stderr, at most 4 KiB */
  output?: string;
  /** what it gave with agent.result */
  result?: unknown;
}

/** A part of the runs below one. */
export interface ChildListResult {
  children: Child[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A change that was left out. */
export interface CollectLeft {
  path: string;
  why: string;
}

/** Counts what was copied. */
export interface CollectResult {
  /** and links */
  files: number;
  /** of the files */
  bytes: number;
  /** changes that were left out */
  missing: number;
  /** the first of them */
  left: CollectLeft[];
}

/** Counts what was written, and names what was not. */
export interface OwnApplyResult {
  applied: number;
  refused: number;
  /** the first of those that were refused */
  left: CollectLeft[];
}

/** Hints for people and clients, as those of MCP. Absent: unknown. */
export interface Annotations {
  /** it changes nothing */
  read_only?: boolean;
  /** it may remove or overwrite */
  destructive?: boolean;
  /** a repetition changes nothing more */
  idempotent?: boolean;
  /** it reaches beyond the sandbox */
  open_world?: boolean;
}

/** What a caller sees of a tool. */
export interface Tool {
  name: string;
  title?: string;
  description: string;
  /** the JSON schema of the arguments, which are an object. */
  arguments: unknown;
  /** that of the result, which is JSON then; absent: the result is text. */
  result?: unknown;
  annotations?: Annotations;
}

/** Has tools, by name. */
export interface ToolListResult {
  tools: Tool[];
  /** after of the next part; absent: there is none */
  next?: string;
}

/** What a tool gave. That it failed is a result, too: the model that called it can do better. */
export interface ToolCallResult {
  /** its id, which the audit log has */
  call: string;
  /** says that the tool failed, was ended, or was not done because its arguments do not fit. */
  failed?: boolean;
  /** the result, of at most 48 KiB. Bytes that are no UTF-8 are replaced. */
  text: string;
  /** why it failed. */
  error?: string;
  /** how many bytes of the result are not in it. */
  left?: number;
  duration_ms: number;
}

/** A part of a run's grants. */
export interface GrantListResult {
  grants: Grant[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** One grant. */
export interface GrantResult {
  grant: Grant;
}

/** Lists what is gone. */
export interface GrantRevokeResult {
  revoked: string[];
}

/** Says whether, and why. */
export interface GrantCheckResult {
  allowed: boolean;
  /** the id of the one that allows it */
  grant?: string;
  reason: string;
}

/** What a run spends from. */
export interface BudgetResult {
  budgets: Budget[];
}

/** Names the reservation. */
export interface BudgetReserveResult {
  reservation: string;
}

/** Names the message. */
export interface MailSendResult {
  id: string;
  trace: string;
  /** for place in the mailbox */
  waited_ms?: number;
}

/**
 * Names a body that is larger than BodyMost, or no JSON. It is kept apart, and named by its
 * content.
 */
export interface Blob {
  /** 64 hexadecimal digits */
  sha256: string;
  bytes: number;
}

/** A message as its receiver gets it. All but Body, Priority, Expires and Trace is set by clove. */
export interface Mail {
  /** opaque */
  id: string;
  /** the run that sent it; empty: a user did */
  from: string;
  sender: string;
  /** as the sender wrote it */
  to: string;
  sent: Time;
  /** then it becomes a dead letter */
  expires?: Time;
  /** the same in all messages that answer one another, causation the call that sent it. */
  trace?: string;
  causation: string;
  /** its sender waits for an answer (mail.reply) */
  asks?: boolean;
  /** the id of the message that it answers */
  answers?: string;
  /** null beside a blob: there is only that */
  body: unknown;
  /** blob.read returns it, until the message is acknowledged */
  blob?: Blob;
}

/** Has messages, at least one. Each comes again until it is acknowledged. */
export interface MailReceiveResult {
  messages: Mail[];
}

/** Has what the calls in Then returned, in their order. */
export interface MailAckResult {
  results?: unknown[];
}

/** The answer. It is taken out of the mailbox by mail.ack. */
export interface MailAnswerResult {
  message: Mail;
}

/** Says how many subscribers there are: each has a copy, or its mailbox is full. */
export interface MailPublishResult {
  delivered: number;
  /** they get no copy */
  full: number;
  trace: string;
}

/**
 * A piece of work in a queue. All but Body, Blob, Result, ResultBlob, Priority, Delay, Deadline,
 * AttemptsMost and Trace is set by clove.
 */
export interface Job {
  /** opaque */
  id: string;
  /** of the queue */
  owner: number;
  namespace?: string;
  queue: string;
  /** delayed, ready, held, dead or done */
  state: string;
  priority?: number;
  /** the run that added it; absent: a user did */
  from?: string;
  sender: string;
  added: Time;
  /** when it is delayed: it is ready then */
  due?: Time;
  /** then it is dead */
  deadline?: Time;
  attempts: number;
  /** how often it is tried. */
  attempts_most: number;
  /** the run that works on it */
  holder?: string;
  /** of the holder's lease; absent: it lasts as long as that run */
  until?: Time;
  /** when it was done or dead */
  ended?: Time;
  /** why the last attempt failed */
  why?: string;
  /** and causation are as in Mail. */
  trace?: string;
  causation: string;
  /** left out by job.list */
  body?: unknown;
  /** its body, or beside it; blob.read returns it */
  blob?: Blob;
  /** of one that is done */
  result?: unknown;
  /**
   * the result of one that is done, or beside it. blob.read returns it to the run that added the
   * job.
   */
  result_blob?: Blob;
  /** the end of what the last run wrote that clove has started for it */
  output?: string;
}

/** One job. */
export interface JobResult {
  job: Job;
}

/** Has what the calls in Then returned, in their order. */
export interface JobCompleteResult {
  results?: unknown[];
}

/** Has them, without their bodies. */
export interface JobListResult {
  jobs: Job[];
}

/**
 * A queue of jobs of a namespace. Agents with a grant send:job/NAME add jobs, and those with a
 * grant name:job/NAME claim them.
 */
export interface Queue {
  owner: number;
  namespace?: string;
  name: string;
  /**
   * what clove starts for each job, as it was when the queue was added (Digest); empty: agents
   * claim.
   */
  manifest?: string;
  digest?: string;
  /** jobs that are held at once; 0: as many as there are */
  concurrency: number;
  /** how often a job is tried, unless it says it */
  attempts: number;
  /** before the second attempt; doubled before each one after */
  backoff_ms: number;
  /** how long a run holds a job that it claims, and does not renew */
  lease_ms: number;
  /** jobs */
  waiting: number;
  held: number;
  dead: number;
  /** the last ones, at most 256 */
  done: number;
  /** why clove starts nothing for jobs that wait */
  why?: string;
  /**
   * the run that has made it for itself; absent: a user has. What clove starts for it are children
   * of that run.
   */
  maker?: string;
}

/** One queue. */
export interface QueueResult {
  queue: Queue;
}

/** A live run that has a name. */
export interface NameHolder {
  run: string;
  /** of the run */
  name: string;
  tags?: string[];
  since: Time;
}

/**
 * A name that live runs of a namespace hold, or that a user has reserved. The name topic/T has the
 * subscribers of the topic T.
 */
export interface Name {
  owner: number;
  /** below the owner */
  namespace?: string;
  name: string;
  /** it is kept also without a run */
  reserved?: boolean;
  /** of the reservation */
  tags?: string[];
  /** the one whose turn is next comes first */
  holders: NameHolder[] | null;
  /** of what mail with wake starts a run while none holds the name, held by digest; empty: none. */
  manifest?: string;
  digest?: string;
  /** why nothing starts */
  why?: string;
}

/** One name. */
export interface NameResult {
  name: Name;
}

/** A part of the names, in the order of the namespaces and of the names. */
export interface NameListResult {
  names: Name[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A budget of which nothing is left, when people were asked. Amounts are in the dimension's unit. */
export interface ApprovalBudget {
  account: string;
  dimension: string;
  granted: number;
  used: number;
  /** by the call that did not fit; 0: what was used is more than was granted */
  wanted?: number;
  /** that a yes adds to what is granted */
  more: number;
  /** when the period began */
  since?: Time;
  /** when it ends, and with it the question; absent: the budget has no period */
  until?: Time;
}

/**
 * The changes that people were asked to have written back. run.diff with the same paths gives them
 * with the same digest, unless they are others by now.
 */
export interface ApprovalChanges {
  /** inside; absent: all of the workspace */
  paths?: string[];
  digest: string;
}

/** The answer of one user. */
export interface ApprovalAnswer {
  /** the user */
  uid: number;
  allow: boolean;
  time: Time;
  /** the agent reads it */
  reason?: string;
  /** for one time */
  once?: boolean;
  /** how long the yes is to hold */
  for_ms?: number;
  /** the run's --on-ask gave it, with the proof of its owner's key */
  command?: boolean;
}

/**
 * A question to people, and their answers. An answer holds for exactly what is shown: Digest names
 * it.
 */
export interface Approval {
  id: string;
  state: string;
  kind: string;
  run: string;
  /** the name of the run */
  agent: string;
  /** of the run */
  owner: number;
  namespace?: string;
  /** in full: the target, or the method with its parameters */
  what: string;
  /** the parts of it, a line each */
  shown?: string[];
  /** the agent's own words about it */
  says?: string;
  /** what it would cost */
  cost?: string;
  /** what else the same yes would allow */
  also?: string;
  /**
   * what a yes would allow: a target, or what clove budget raise takes; of a call the rule that
   * would have allowed it
   */
  rule?: string;
  /** of kind budget */
  budget?: ApprovalBudget;
  /** of kind apply */
  changes?: ApprovalChanges;
  /** so many users must say yes; absent: one */
  needed?: number;
  /** of all of the above but the state */
  digest: string;
  /** when */
  asked: Time;
  /** then it is a no */
  expires: Time;
  answers?: ApprovalAnswer[];
  /** the id of the run's grant that a yes about the network has made */
  grant?: string;
  /** the answer holds so long; absent: to the end of the run */
  until?: Time;
  /** a yes is for one time */
  once?: boolean;
  /** when it was */
  used?: Time;
}

/** A part of the questions, in the order in which they were asked. */
export interface ApprovalListResult {
  approvals: Approval[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A key with its value. */
export interface StateResult {
  path: string;
  /** each change in the scope has a higher one; 0: there is no such key */
  version: number;
  /** of the value and of the blob */
  bytes?: number;
  /** blob.read returns it, with the key as at */
  blob?: Blob;
  changed?: Time;
  expires?: Time;
  /** absent: there is no such key, or only a blob */
  value?: unknown;
}

/** The key's version now. */
export interface StateSetResult {
  version: number;
}

/** The version that was removed. */
export interface StateDeleteResult {
  /** 0: there was no such key */
  version: number;
}

/** A key as it stands. */
export interface StateEntry {
  path: string;
  /** each change in the scope has a higher one; 0: there is no such key */
  version: number;
  /** of the value and of the blob */
  bytes?: number;
  /** blob.read returns it, with the key as at */
  blob?: Blob;
  changed?: Time;
  expires?: Time;
}

/** Has keys in the order of their paths, without their values. */
export interface StateListResult {
  keys: StateEntry[];
  /** there are more */
  next?: string;
}

/** Names the upload. */
export interface BlobOpenResult {
  upload: string;
}

/** Says how much of the upload is written. */
export interface BlobWriteResult {
  /** bytes; the next part begins there */
  written: number;
}

/** Names a blob. */
export interface BlobResult {
  /** 64 hexadecimal digits */
  sha256: string;
  bytes: number;
}

/** A part of a blob. */
export interface BlobReadResult {
  /** at most 36 KiB, as base64 */
  data: Base64;
  bytes: number;
  /** the offset of the next part; absent: this was the last */
  next_offset?: number;
}

/** A call of a model that a limit lets wait. */
export interface WaitingCall {
  model: string;
  /** whose it is: model or provider, or target where a provider named it in an answer */
  limit: string;
  /** 1: the next */
  position: number;
  /** so far */
  waited_ms: number;
  /** that it still waits, if no other call comes before it; absent: unknown */
  expected_ms?: number;
}

/** Has the calls of models that wait for their turn: those that wait longest first, at most 64. */
export interface ModelQueueResult {
  calls: WaitingCall[];
}

/** Names the event. */
export interface EventAppendResult {
  /** also that of the call */
  id: string;
}

/**
 * A record of the audit log in a chain of causes: an event of an agent's, a call, or the start or
 * the end of a run.
 */
export interface TraceStep {
  /** of the event or the call; of a start the run's */
  id: string;
  time: Time;
  /** as in the audit log */
  kind: string;
  owner: number;
  namespace?: string;
  /** the caller */
  principal?: string;
  /** the name of the run */
  agent?: string;
  run?: string;
  method: string;
  what?: string;
  /** ids of what it made or took */
  object?: string;
  verdict?: string;
  causation?: string;
  /** with down: from the first one */
  depth?: number;
  /** of an agent's event, while it is kept */
  body?: unknown;
}

/** A chain of causes. */
export interface TraceResult {
  /**
   * has the one that was asked for first, and behind each what it follows from, or with down what
   * follows from it.
   */
  steps: TraceStep[];
  /** there are more */
  truncated: boolean;
}

/** A part of the records about a namespace, the oldest first. */
export interface AuditReadResult {
  /** docs/audit.md has their fields */
  records: unknown[];
  /** what to ask with in after; absent: these were the last */
  next?: number;
}

/** A part of a grant that is handed over, whose rest is lost. */
export interface HandoffGrant {
  /** the id of a grant that the run holds */
  from: string;
  /** KIND:PATTERN[:RIGHTS], covered by from */
  grant: string;
  expires?: Time;
  uses?: number;
}

/** Limits of a child, each at most the manifest's; 0: the manifest's. */
export interface SpawnLimits {
  memory_bytes?: number;
  cpus?: number;
  pids?: number;
  disk_bytes?: number;
  output_bytes?: number;
  cpu_time_ms?: number;
  timeout_ms?: number;
}

/** A file or folder of the parent's that the child gets a copy of. */
export interface SpawnFile {
  /** a path inside the parent's sandbox */
  from: string;
  /** a path inside the child's */
  to: string;
}

/**
 * A call that another one carries: of a method that changes something in one transaction, without
 * a key of its own.
 */
export interface ThenCall {
  method: string;
  params?: unknown;
}

/** Names a key of a scope. */
export interface StatePath {
  /** run, name or namespace; absent: that of name, or else run */
  scope?: string;
  /** of the scope name */
  name?: string;
  /** parts with / between them: plans/today */
  path: string;
}

/** Says that a dimension reached a mark. */
export interface BudgetNote {
  budget: Budget;
  /** of how many it is the last; absent: of one */
  count?: number;
}

/** Says that the grants of the run are others now. */
export interface GrantsNote {
  /** of how many it is the last; absent: of one */
  count?: number;
}

/** Says that there is a task: ask agent.offers, or accept it. */
export interface OfferNote {
  offer: string;
  from: string;
  /** of how many it is the last; absent: of one */
  count?: number;
}

/** Says that another run has accepted a task of this one. */
export interface AcceptedNote {
  offer: string;
  to: string;
  /** of how many it is the last; absent: of one */
  count?: number;
}

/** Counts the notifications that were dropped before this one: too many waited. */
export interface LostNote {
  lost: number;
}

/** What a cloved says of itself. */
export interface InfoResult {
  /** of the program */
  version: string;
  /** of the contract */
  api: number;
  pid: number;
  started: Time;
  root: string;
  run_dir: string;
  draining: boolean;
  /** the caller's; of root all */
  runs: { [key: string]: number };
}

/** Numbers of jobs by their state. */
export interface JobCounts {
  ready: number;
  delayed: number;
  held: number;
  dead: number;
  /** the last ones of each queue */
  done: number;
}

/** What there is of all that clove counts: for root of everybody, for others of their own. */
export interface SummaryResult {
  /** of the program */
  version: string;
  /** of the contract */
  api: number;
  pid: number;
  started: Time;
  root: string;
  run_dir: string;
  draining: boolean;
  /** the caller's; of root all */
  runs: { [key: string]: number };
  /** number of the newest event */
  events: number;
  mailboxes: number;
  /** in them */
  messages: number;
  dead_letters: number;
  /** of jobs */
  queues: number;
  /** in them */
  jobs: JobCounts;
  names: number;
  blobs: number;
  /** of them, and of uploads at their whole size */
  blob_bytes: number;
  grants: number;
  /** accounts in which something is counted or limited */
  budgets: number;
  /** of these with a limit of which nothing is left */
  spent: number;
  /** questions that wait for people */
  approvals: number;
}

/** Names the runs that lived. */
export interface PanicResult {
  ended: string[];
}

/** What is wrong with kernel.db, in words; empty if it is sound. */
export interface CheckResult {
  problems: string[];
}

/** The part as text. */
export interface DebugResult {
  text: string;
}

/** An identity inside the sandbox's own user namespace. */
export interface User {
  name: string;
  /** 0 to MaxUser */
  uid: number;
  gid: number;
  home: string;
}

/**
 * An additional line of the agent's /etc/hosts. It allows nothing: only the egress rules say what
 * the agent may reach, and they judge the address.
 */
export interface HostName {
  name: string;
  address: string;
}

/** One resource limit of setrlimit(2). Name is docker's name: "nofile", "core", "stack", … */
export interface Rlimit {
  name: string;
  soft: number;
  hard: number;
}

/**
 * Bound all processes of the agent together. 0 means no limit for WallClock, CPUTime, CPUs, CPUSet
 * and OutputBytes; all other limits are always set.
 */
export interface Limits {
  memory_bytes: number;
  /** memory and swap together, as docker counts; equal to memory_bytes: no swap */
  memory_swap_bytes: number;
  /** CPU seconds per second */
  cpus?: number;
  cpuset_cpus?: string;
  pids: number;
  rlimits?: Rlimit[];
  /** of all processes together */
  cpu_time_ns?: number;
  /** on CLOCK_BOOTTIME, from the agent's start */
  wall_clock_ns?: number;
  /** between stop_signal and SIGKILL */
  stop_grace_ns: number;
  /** requests the end; 0: SIGTERM */
  stop_signal?: number;
  /** stdout and stderr together */
  output_bytes?: number;
  /** the writable layer */
  disk_bytes: number;
  /** /dev/shm */
  shm_bytes: number;
}

/**
 * Shows a host path inside at Target. Writes change the host's files. Where a user other than root
 * requested the run through cloved, the source is opened with that user's rights.
 */
export interface Bind {
  source: string;
  target: string;
  read_only?: boolean;
  /**
   * puts the agent's own layer over a directory that is read-only: the agent changes what it sees,
   * and the host's files stay. Only where the root can be written at target.
   */
  copy_on_write?: boolean;
  /** shows a directory copy on write although it has credentials (package homedir). */
  secrets?: boolean;
}

/** A private memory file system; its pages count as the agent's memory. */
export interface Tmpfs {
  target: string;
  /** 0: half of the memory limit */
  size_bytes?: number;
  /** 0: 01777 */
  mode?: number;
}

/**
 * Names a home that is kept. The same user's runs with the same name for the same folder have it,
 * one after the other.
 */
export interface Home {
  name: string;
  /** of the host: the workspace, or where the caller was */
  folder: string;
}

/** Describes the agent's root file system. */
export interface Files {
  /** host directory that replaces the host base; empty: the host's own system */
  rootfs?: string;
  /** host directory shown copy-on-write at WorkspaceDir; empty: an empty directory */
  workspace?: string;
  /**
   * the repository to which the workspace's .git file leads, if nothing in it says that it is the
   * workspace's; empty: it must say so to be shown; NoGitDir: none is shown.
   */
  git_dir?: string;
  /** the root is read-only, except for WritablePlaces and the mounts that the user requested */
  read_only?: boolean;
  /** with read_only: the only ones of WritablePlaces that stay writable; nil: all */
  writable?: string[];
  /**
   * the only programs that may be executed: paths inside, directories, or patterns of path.Match;
   * nil: all
   */
  execute?: string[];
  /** the only files and directories inside that may be read, beside OwnPlaces; nil: all */
  read?: string[];
  /** host directories of interpreters, bound read-only at the same path */
  prefixes?: string[];
  binds?: Bind[];
  tmpfs?: Tmpfs[];
  /** nil: a new one, in the layer */
  home?: Home;
  /** folders inside that are kept with home, each empty at first; see ValidateKeep */
  keep?: string[];
  /** LandlockRequired: the run is refused where landlock does not hold the rules, too */
  landlock?: string;
}

/**
 * Selects the system call filter. Profile is the name of a built-in profile, or the path that
 * Document was read from.
 */
export interface Seccomp {
  profile: string;
  /** docker's JSON format; nil for a built-in */
  document?: Base64;
}

/**
 * One target that is allowed or denied. It is the one form of a rule on disk, on the wire and as
 * the input of egress.New, which parses and compiles it.
 */
export interface EgressRule {
  deny?: boolean;
  /** as egress.ParseTarget reads it: a missing port depends on deny, so it is kept as given */
  target: string;
  /** where it was given: "--allow", "--deny", an annotation, a document's name */
  source: string;
}

/** A port of the agent that clients on the host can reach. */
export interface PublishedPort {
  /** where the host listens; port 0: any free one */
  host: string;
  /** the agent's, on its loopback */
  port: number;
}

/** What the agent may reach through the gate, and which of its ports the host may reach. */
export interface Egress {
  rules?: EgressRule[];
  /** ports on the host's loopback, reachable at the same port of the agent's loopback */
  host_ports?: number[];
  publish?: PublishedPort[];
  /** name servers; none: the host's */
  dns?: string[];
  limits: EgressLimits;
}

/**
 * What a run has of what agents share. The texts are those of the command line; packages
 * kernel/grant and kernel/budget say what they mean.
 */
export interface Kernel {
  /** the agent has a socket of its own, also without a grant */
  socket?: boolean;
  /** KIND:PATTERN[:RIGHTS], given at the first start */
  grants?: string[];
  /** DIMENSION=AMOUNT..., set at the first start */
  budgets?: string[];
  /** what happens when a budget is spent, one of AtEnds; empty: end */
  at_end?: string;
  /** what a refusal does to the run: deny, pause, end or end-after:N; empty: deny */
  on_denial?: string;
  /** command or URL for a budget that reached its warning; empty: none */
  on_warn?: string;
  /** command or URL for a budget of which nothing is left; empty: none */
  on_end?: string;
  /** command or URL that may answer questions; empty: none */
  on_ask?: string;
  /** absolute path of the owner's key for the proofs of on_ask's answers */
  on_ask_key?: string;
  /** of what no rule decides, what people are asked about: some of asks */
  asks?: string[];
  /** how long a connection, a request or a call of a tool is held for people's answer; 0: AskHold. */
  ask_hold_ns?: number;
  /** below the owner; empty: the owner's own */
  namespace?: string;
  /**
   * those that the run may use, each with how it gets the placeholder: NAME:env=VARIABLE,
   * NAME:file=/PATH, or NAME: and a program (secrets.ParseMount).
   */
  secrets?: string[];
  /**
   * a client of models, one of ModelSetups, whose file is written into the agent's home before it
   * starts; empty: none.
   */
  model_setup?: string;
  /** keep what its calls of models say and get */
  model_log?: boolean;
  /**
   * and stdin_from join the agent's standard streams to mail, as ParseMailStream reads; empty:
   * they are not.
   */
  stdout_to?: string;
  stdin_from?: string;
  /** how many levels of runs may be below this one; 0: its children start none. */
  spawn_depth?: number;
  /** OrphansKeep, or empty: the run's children are ended with it. */
  orphans?: string;
  /** ends the run when its agent has only waited for mail and jobs for so long; 0: nothing does. */
  idle_ns?: number;
}

/**
 * A policy that is decided beside a run's own and recorded, and refuses nothing. Its values are
 * what the run would have had under it; nothing of the host is opened for it.
 */
export interface Shadow {
  policy: Policy;
  user: User;
  cap_drop?: string[];
  limits: Limits;
  files: Files;
  seccomp: Seccomp;
  network: string;
  egress: Egress;
  /** Socket, grants, budgets, at_end and on_denial only */
  kernel?: Kernel;
  allow_unenforced?: string[];
}

/** Says what happens when a run that cloved looks after has ended. */
export interface Restart {
  /** empty: RestartNever */
  policy?: string;
  /** restarts in a row before it is given up; 0: no maximum */
  max?: number;
}

/**
 * How long a run may take until it is ready, and how that is seen. An agent also says so itself
 * (agent.ready).
 */
export interface Ready {
  /** argv inside the sandbox: it is ready when this exits 0; none: only the agent says so */
  command?: string[];
  /** one that is not ready then is ended; 0: nothing waits for it */
  within_ns?: number;
}

/**
 * The complete request for one run, with defaults merged in. It is stored with the run and used at
 * each start, so a later change of a default does not affect existing runs. Update changes it too.
 */
export interface Spec {
  id: string;
  name: string;
  labels?: { [key: string]: string };
  /** argv inside the sandbox */
  command: string[] | null;
  /** KEY=VALUE, complete: nothing is inherited */
  env?: string[];
  /** working directory inside the sandbox */
  dir: string;
  /** the agent's user inside the sandbox */
  user: User;
  /** capabilities that root inside the sandbox loses: names of Capabilities, or AllCapabilities */
  cap_drop?: string[];
  /** empty: the ID */
  hostname?: string;
  /** what CLOCK_MONOTONIC and CLOCK_BOOTTIME begin at inside; 0: they are the host's */
  clock_start_ns?: number;
  /** additional lines of /etc/hosts */
  hosts?: HostName[];
  /** give the agent a pty */
  terminal?: boolean;
  /** no client waits for it; its output goes to the log */
  detached?: boolean;
  /**
   * Foreground: cloved starts it for one session (run.attach). The session has its streams, and
   * the run ends with the session.
   */
  foreground?: boolean;
  /** detached: keep stdin open for clove attach */
  stdin?: boolean;
  /** --rm: keep neither record nor layer */
  remove?: boolean;
  limits: Limits;
  files: Files;
  seccomp: Seccomp;
  /** one of NetworkModes */
  network: string;
  egress: Egress;
  kernel?: Kernel;
  policy: Policy;
  manifest?: Manifest;
  /** decided and recorded beside policy; nil: none */
  shadow?: Shadow;
  /** note what the run uses, see Observed */
  learn?: boolean;
  restart?: Restart;
  /** when to start it, in the format of crontab(5) */
  schedule?: string;
  /** each time of the schedule reuses the layer of the previous one */
  keep_files?: boolean;
  /** runs that come first: NAME or NAME:CONDITION, see after */
  after?: string[];
  ready?: Ready;
  /** order among queued runs that wait for memory: higher first */
  priority?: number;
  /** bounds how long one launch step may make no progress; 0: see StartBound. */
  start_timeout_ns?: number;
  /** lists the controls (Control* words) that may be weakened. */
  allow_unenforced?: string[];
}

/** The user that asked for a run, as the kernel reports a socket's peer. The zero value is root. */
export interface Owner {
  uid: number;
  gid: number;
}

/**
 * What cloved keeps of a run besides what it asks for: where it stands in the queue and between
 * its starts. Of the marks, phase.go is the only writer.
 */
export interface QueueState {
  /** a restart's backoff, or a delay that was asked for */
  not_before?: Time;
  /** when it joined the queue */
  since?: Time;
  /** by policy, in a row */
  restarts?: number;
  /** how often it was queued */
  starts?: number;
  /** mark: a person wanted its end, and neither policy nor schedule starts it again */
  stop_asked?: boolean;
  /** which person, and when; its record says it too */
  stopped?: Stopped;
  /**
   * id of the call from which its end follows, stored before that ends it; empty: none, or not
   * known
   */
  cause?: string;
  /** mark: its policy has no restarts left */
  given_up?: boolean;
  /** frozen until a person resumes it */
  paused?: boolean;
  /** the next start begins with a new layer */
  fresh?: boolean;
  /** when it said so, since its last start */
  ready?: Time;
  /** mark: it waits for the next time of its schedule */
  scheduled?: boolean;
  /** the schedule's times up to here were started or skipped */
  settled?: Time;
  /** when its schedule starts it next. cloved answers with it; it is not stored. */
  next?: Time;
  /** W3C traceparent of the call that asked for it, where cloved traces */
  trace?: string;
}

/**
 * What a live run holds on this host. Decision 5 (docs/decisions) says why each run has a range of
 * host ids of its own.
 */
export interface Lease {
  /** index of the range of host ids */
  id_range: number;
  /** /proc/sys/kernel/random/boot_id: no run survives into another boot */
  boot_id: string;
  /** for display; the lock in the run directory proves liveness */
  supervisor_pid: number;
  /**
   * the agent's cgroups: from the controller (v1) or "" (v2) to the path below that hierarchy's
   * mount point.
   */
  cgroups: { [key: string]: string } | null;
}

/**
 * Identifies an OCI container that an engine ran with clove-oci. A run with a Container is only
 * the record of that container: clove owns no layer, log or process of it.
 */
export interface Container {
  /** the engine's id */
  id: string;
  /** of the container, absolute; two engines may use the same id */
  directory: string;
}

/** A run above another, with its names when the other was started. */
export interface Ancestor {
  id: string;
  name: string;
  namespace?: string;
  /** its kernel.SpawnDepth */
  depth?: number;
}

/** A file of the host that a run of a manifest executes. */
export interface ManifestFile {
  /** absolute */
  path: string;
  /** in hex */
  sha256: string;
}

/** What the store keeps of one run from its creation on. */
export interface Run {
  spec: Spec;
  state: string;
  owner?: Owner;
  /**
   * the resource limits of the process that requested the run, where the run has commands for the
   * host (Kernel.HasCommands). cloved sets them; none: its own.
   */
  caller_rlimits?: Rlimit[];
  turn?: QueueState;
  created: Time;
  /** when the agent first executed */
  started?: Time;
  /** nil once released */
  lease?: Lease;
  /** host pid of clove-init, while running */
  pid?: number;
  /** kept writable layer: path of its image; empty: none */
  layer?: string;
  /** set when state is StateEnded */
  record?: Record;
  /** the record of the last time, where the run was restarted. */
  previous?: Record;
  /**
   * set where this is the record of an OCI container. Such a run is always ended, has no layer and
   * no log, and never starts.
   */
  container?: Container;
  /**
   * the run whose agent started this one; empty: a person did. Only cloved will set it, from the
   * socket that asked: a caller cannot name one.
   */
  parent?: string;
  /**
   * the runs above it, its parent first, as they were when it was started; empty: a person started
   * it. It spends from their accounts, and its cgroup is below theirs.
   */
  above?: Ancestor[];
  /**
   * the files of the host that its agent executes, where an agent started it. It does not start
   * while one of them is another.
   */
  executes?: ManifestFile[];
  /** when it ends at the latest, whatever its own limit is: its parent does; zero: never. */
  deadline?: Time;
}

/** A run, and where it waits, why. Values of its environment that look like secrets are redacted. */
export interface RunResult {
  run: Run;
  reason?: string;
}

/** The runs, newest first, and why those that wait do. */
export interface ListResult {
  runs: Run[];
  reasons?: { [key: string]: string };
  /** what to ask with in after; empty: these were the last. */
  next?: string;
}

/** How a run ended. */
export interface WaitResult {
  record: Record;
}

/** Lists what was removed. */
export interface PruneResult {
  removed: string[];
}

/** The agent's present and total usage. A figure that this host cannot supply is nil, never 0. */
export interface Stats {
  time: Time;
  paused?: boolean;
  /** since the agent's start, on CLOCK_BOOTTIME */
  wall_ms: number;
  /** now, page cache included */
  memory_bytes?: number;
  /** now; threads count */
  pids?: number;
  usage: Usage;
  events: Events;
  /** in force now */
  limits: Limits;
}

/** What a live run uses now. */
export interface StatsResult {
  stats: Stats;
}

/** One process of an agent. Its ids are those inside the sandbox. */
export interface Process {
  pid: number;
  /** 0: started from outside, as PID 1 and what `clove exec` starts */
  parent_pid: number;
  uid: number;
  /** one letter, as in proc_pid_stat(5) */
  state: string;
  threads: number;
  started: Time;
  cpu_ms: number;
  rss_bytes: number;
  /** its arguments, or its name in brackets where it has none */
  command: string[] | null;
}

/** The processes of a live run. */
export interface ProcessesResult {
  processes: Process[];
}

/** One line of output as it stands in the log file. */
export interface LogLine {
  time: Time;
  /** stdout, stderr, or clove: a line of clove's own; request and answer in a log of models */
  stream: string;
  /** without the line's end */
  text?: string;
  /** in place of text, where it is not UTF-8 */
  bytes?: Base64;
  /** the line goes on in the next one */
  partial?: boolean;
  /**
   * Lost counts what is missing here, since the line before it: what rotation or a full disk
   * dropped.
   */
  lost_lines?: number;
  lost_bytes?: number;
  /**
   * counts the run's lines from 1 on, those that are lost included; absent in the file, and in a
   * line that says what is missing.
   */
  number?: number;
  /** counts the bytes of these lines without their ends, this one included. */
  offset?: number;
}

/** The notification of one line, or of many where the caller asked for that. */
export interface LogNote {
  id: unknown;
  line?: LogLine;
  lines?: LogLine[];
}

/** Says how the session ended. */
export interface AttachResult {
  /** the agent goes on */
  detached: boolean;
  exit_code: number;
  /** how the run ended, unless it goes on. */
  record?: Record;
}

/** Said to the caller of a foreground run. */
export interface SessionDenied {
  time: Time;
  kind: string;
  /** an address, a call's name, a path, a capability */
  target: string;
  rule: string;
  count: number;
  /** path inside of the program that tried */
  program?: string;
  /** what it was answered: "EPERM" */
  errno?: string;
  /** absent for network */
  call?: DeniedCall;
  reason?: string;
  hint?: string;
}

/** Said to the caller of a foreground run. */
export interface SessionBudget {
  /** whose: UID, UID/ns:PATH, UID/name:NAME, UID/provider:NAME or UID/run:ID */
  account: string;
  dimension: string;
  /** absent: used is counted, and nothing limits it */
  granted?: number;
  reserved: number;
  used: number;
  /** the largest used so far */
  peak: number;
  warn_at?: number;
  /** end, pause or refuse */
  at_end?: string;
  /** hour, day or month, UTC */
  period?: string;
  /** when the period began */
  since?: Time;
  warned?: boolean;
  /**
   * more is used than was granted, of an account above what agents charge all of it, or wanted is
   * set
   */
  spent?: boolean;
  /** the reservation that stopped the run, because less than it is left */
  wanted?: number;
  /** nothing is left, and the run is paused; else it reached its warning */
  paused?: boolean;
  /** when the wall clock ends a paused run; absent: never */
  timeout?: Time;
}

/** A piece of what a process wrote. */
export interface SessionOutput {
  /** stdout, stderr; a terminal has only stdout */
  stream: string;
  data: Base64;
  /** bytes missing before it: the caller was too slow */
  lost_bytes?: number;
  /** what the network turned away for the first time, in place of data. */
  denied?: SessionDenied;
  /** reached its mark, in place of data. */
  budget?: SessionBudget;
  /** names a kept home that another run has, in place of data: this one has a copy. */
  home_copied?: string;
  /** a question about the run that waits for people, in place of data. */
  asked?: Approval;
}

/** Says how the process ended. */
export interface ExecResult {
  exit_code: number;
  /** why the command was not executed (126) or not found (127), or was ended (124). */
  failure?: Failure;
}

/** Sums up the notifications. */
export interface DiffResult {
  changes: number;
  /**
   * stands for the changes of the workspace that were listed, the only ones that can be applied,
   * and for the bytes of their files. Empty with list_only.
   */
  digest: string;
}

/**
 * Both sides of a change of a file or a link, whose content is its target. A side that does not
 * exist, or is of another type, has none.
 */
export interface ChangeContents {
  /** the host's */
  before?: Base64;
  /** the agent's */
  after?: Base64;
  /** the permission bits of the host's; 0: it has none */
  mode: number;
  /** why both are missing; empty otherwise. */
  omitted?: string;
}

/** One difference between the agent's files and the host's. The agent chose every string in it. */
export interface Change {
  /** added, changed, deleted, renamed */
  kind: string;
  /** inside the sandbox */
  path: string;
  /** file, dir, symlink, fifo, socket, char, block, ref */
  type?: string;
  /** bytes of a regular file, else 0 */
  size: number;
  /** the permission, setuid, setgid and sticky bits */
  mode: number;
  /** what a symbolic link says, the commit of a ref */
  target?: string;
  /** of a file of the workspace, if it was asked for: equal sums, equal bytes */
  sum?: string;
  /** the type of the file before, where it was another type */
  was?: string;
  /** the former path inside of a renamed directory */
  from?: string;
  /**
   * names the host program that executes the file without being asked, as git does with a hook;
   * empty: clove knows none.
   */
  executed_by?: string;
  /**
   * names the agents that follow the file's text in this folder, as AGENTS.md; empty: clove knows
   * none.
   */
  instructs?: string;
  /**
   * says why a program that clove does not know may execute it: it is in a new folder whose name
   * begins with a dot, with programs or commands in it. Empty: nothing points to that.
   */
  unknown?: string;
  /** what the host's file does not have of the agent's, after it was applied */
  lost?: string;
  /** why it was not applied, or why Diff did not descend into it */
  refused?: string;
  /** those of a file or link, if they were asked for. */
  contents?: ChangeContents;
}

/** The notification of one change: found by run.diff, or made or refused by run.apply. */
export interface ChangeNote {
  id: unknown;
  change: Change;
}

/** Counts the notifications. */
export interface ApplyResult {
  applied: number;
  refused: number;
}

/** A kept home as it is listed. Nothing in it is read for that. */
export interface KeptHome {
  id: string;
  uid: number;
  name: string;
  /** of the folder */
  device: number;
  inode: number;
  /** its path when the home was made */
  folder: string;
  /** the most that it can have */
  bytes: number;
  /** what it has of the host's disk */
  held_bytes: number;
  created: Time;
  /** kept with it, by their paths inside */
  keep?: string[];
  changed: Time;
  /** a run has it */
  in_use: boolean;
}

/** The kept homes that the caller may see, the one that changed last first. */
export interface HomesResult {
  homes: KeptHome[];
}

/** One that its owner has added. */
export interface AddedManifest {
  owner: number;
  name: string;
  /** sha256: and hex, of the spec and the files */
  digest: string;
  added: Time;
  /** what a run of it may do at most */
  grants?: string[];
}

/** One manifest. */
export interface ManifestResult {
  manifest: AddedManifest;
}

/** A part of the caller's manifests, in the order of their names. */
export interface ManifestListResult {
  manifests: AddedManifest[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** Has what is forgotten. */
export interface ManifestRemoveResult {
  removed: AddedManifest[];
}

/** A tool that a user has added, or one that is built in. */
export interface KeptTool {
  name: string;
  title?: string;
  description: string;
  /** the JSON schema of the arguments, which are an object. */
  arguments: unknown;
  /** that of the result, which is JSON then; absent: the result is text. */
  result?: unknown;
  annotations?: Annotations;
  run: string;
  where: string;
  /**
   * the template of a KindCommand: the program and its arguments. {NAME} stands for an argument of
   * the call; there is no shell.
   */
  command?: string[];
  /** bounds a call; 0: DefaultTimeout. */
  timeout_ns?: number;
  /** what a call takes of budgets' own dimensions, beside one of tool_calls. */
  costs?: { [key: string]: number };
  /** says that a grant must have the tool's name: tool:* does not cover it. */
  named?: boolean;
  owner: number;
  /** absent: it is built in */
  added?: Time;
}

/** Has a tool. */
export interface ToolResult {
  tool: KeptTool;
}

/** Has tools, by name. */
export interface ToolKeptResult {
  tools: KeptTool[];
  /** after of the next part; absent: there is none */
  next?: string;
}

/** A part of the lines of accounts, in the order of their names. */
export interface BudgetListResult {
  budgets: Budget[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** What all runs of a user spent of a dimension in one day. */
export interface DaySum {
  /** of UTC, as 2026-11-23 */
  day: string;
  owner: number;
  /** "(other)": those of a user who had very many on that day */
  dimension: string;
  used: number;
}

/** A part of the sums, in the order of days, users and dimensions. */
export interface BudgetReportResult {
  days: DaySum[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A run that spent something of a dimension in the last minute. */
export interface Spender {
  id: string;
  name: string;
  owner: number;
  namespace?: string;
  dimension: string;
  /** since cloved began, if that is later */
  last_minute: number;
  /** of the run's own budget, in its period */
  used: number;
  /** absent: the run itself has no limit */
  granted?: number;
}

/** Lists who spends most, by dimension. */
export interface BudgetTopResult {
  spenders: Spender[];
}

/** Where messages wait for a run, or for a reserved name. */
export interface Mailbox {
  /** opaque */
  id: string;
  owner: number;
  namespace?: string;
  /** run or name */
  kind: string;
  name: string;
  /** of the kind run */
  run?: string;
  messages: number;
  /** letters */
  dead: number;
  /** when the first message does */
  expires?: Time;
}

/** A part of the mailboxes. Within one, they are in the order of their owners and names. */
export interface MailBoxesResult {
  mailboxes: Mailbox[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A part of the messages of a mailbox, in the order in which they are received. */
export interface MailReadResult {
  messages: Mail[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A message that has expired, or that its receiver has rejected. */
export interface DeadLetter {
  /** the id of the message, for mail.requeue and mail.discard */
  letter: string;
  /** opaque */
  id: string;
  /** the run that sent it; empty: a user did */
  from: string;
  sender: string;
  /** as the sender wrote it */
  to: string;
  sent: Time;
  /** then it becomes a dead letter */
  expires?: Time;
  /** the same in all messages that answer one another, causation the call that sent it. */
  trace?: string;
  causation: string;
  /** its sender waits for an answer (mail.reply) */
  asks?: boolean;
  /** the id of the message that it answers */
  answers?: string;
  /** null beside a blob: there is only that */
  body: unknown;
  /** blob.read returns it, until the message is acknowledged */
  blob?: Blob;
  /** its id */
  mailbox: string;
  why: string;
  died: Time;
}

/** A part of the dead letters. */
export interface MailDeadResult {
  letters: DeadLetter[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** Says what a private key signs: that a user authenticates to a host. */
export interface SSH {
  /** on the hosts; empty: git */
  user?: string;
  /** those that the hosts have, each as HOST:PORT TYPE KEY. */
  host_keys: string[] | null;
}

/** Say what a secret is for. */
export interface Terms {
  /** where it may go: NAME or NAME:PORT, of port 443 without one. */
  hosts: string[] | null;
  /** the requests to these hosts that may pass (ParseRule); none: all. */
  allow?: string[];
  /** the one header that carries it; empty: Authorization. */
  header?: string;
  /** other places that may carry it: InBody, InURL. */
  in?: string[];
  /** begins its placeholders, for programs that look at it, for example ghp_. */
  prefix?: string;
  /** taints that an agent which uses it must not carry. */
  avoid?: string[];
  /**
   * certificates of authorities for its hosts in place of the system's, in PEM form. Root alone
   * gives them.
   */
  ca?: string;
  /**
   * makes the value a private key, which signs authentications and is in no request; nil: the
   * value is a text.
   */
  ssh?: SSH;
  /** lets a run have the value in a file that its agent reads. Such a secret may be for no host. */
  plain?: boolean;
}

/** A request that carried a secret, as the agent sent it: without its query. */
export interface SecretUse {
  secret: string;
  time: Time;
  run: string;
  /** the name of the run */
  agent: string;
  host: string;
  method: string;
  path: string;
}

/** A secret of a user's, without its value. */
export interface Secret {
  name: string;
  owner: number;
  terms: Terms;
  /** when */
  set: Time;
  rotated?: Time;
  /** of the value: 1 when it was set, one more with each secret.rotate */
  version: number;
  expires?: Time;
  /** 0: as many as are asked for */
  max_uses?: number;
  uses: number;
  /** the last use */
  last?: SecretUse;
}

/** One secret. */
export interface SecretResult {
  secret: Secret;
}

/** Has secrets in the order of their names. */
export interface SecretListResult {
  secrets: Secret[];
}

/** Has what is wrong with each secret that cannot be used. */
export interface SecretCheckResult {
  checked: number;
  problems: string[];
}

/** Has the newest uses of each secret, the newest first. */
export interface SecretUsesResult {
  uses: SecretUse[];
}

/** Lets a request carry a secret. */
export interface SecretUseResult {
  /** of the value that is to be used */
  version: number;
}

/** The secrets that a run was started with, by the order of their names. */
export interface SecretOpenResult {
  secrets: Secret[];
}

/** One question. */
export interface ApprovalResult {
  approval: Approval;
}

/**
 * A part of the jobs: first those to be done, then dead and then done ones. Those of one queue are
 * in the order of their priority.
 */
export interface JobsListResult {
  jobs: Job[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** A part of the queues, in the order of the namespaces and of the names. */
export interface QueueListResult {
  queues: Queue[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** One way to serve a model, in the order of trial. */
export interface ModelTarget {
  provider: string;
  /** the provider's name of it */
  model: string;
  weight: number;
  fallback: number;
  priced: boolean;
  /**
   * ok, failing (its last call failed) or out (several failed in a row, and it is left out for a
   * while). It is empty where nothing serves models.
   */
  health?: string;
}

/** A name that agents may use. */
export interface Model {
  name: string;
  /** the model that it stands for; empty: it is no alias */
  alias_of?: string;
  /** in which it is called, such as openai-chat */
  formats: string[] | null;
  /** tokens of input and output together, the least of its targets; 0: unknown */
  context?: number;
  max_output?: number;
  /** the price at each target is known */
  priced: boolean;
  targets: ModelTarget[] | null;
}

/** Lists models and aliases in the order of their names. */
export interface ModelListResult {
  models: Model[];
}

/** Nano-dollars (10^-9 US dollars) for each token: 2 dollars for a million are 2000. */
export interface ModelRates {
  in: number;
  cached: number;
  cache_write: number;
  /** for the longer of the provider's times */
  cache_write_long: number;
  out: number;
  reasoning: number;
}

/** What the tokens of some models cost. */
export interface ModelPrice {
  /** the only provider that it is for; empty: see family */
  provider?: string;
  /** the format of the providers that it is for; empty: any */
  family?: string;
  /** whose servers it is for; empty: any */
  host?: string;
  /** the provider's names; * is any run of characters */
  model: string;
  in: number;
  cached: number;
  cache_write: number;
  /** for the longer of the provider's times */
  cache_write_long: number;
  out: number;
  reasoning: number;
  /** replaces the rates of a whole call with more than long_above tokens of input. */
  long?: ModelRates;
  long_above?: number;
  /** thousandths of the price that a service tier costs, as 500 for half. */
  tiers?: { [key: string]: number };
  /** when it was read, as 2026-11-23 */
  date: string;
  source: string;
  /** it is clove's own, and not of models.yaml */
  built_in: boolean;
  /** the providers at which a row above holds in place of this one. */
  overridden?: string[];
}

/**
 * The table of prices, in the order in which a model's is looked up: the first row that fits
 * holds.
 */
export interface ModelPricesResult {
  prices: ModelPrice[];
}

/** Why a call went wrong. */
export interface ModelFailure {
  /** one of the reasons below */
  reason: string;
  message: string;
  hint: string;
}

/** How one call of a model went. */
export interface ModelTestResult {
  /** after aliases */
  model: string;
  provider: string;
  /** the provider's name of the model */
  target: string;
  format: string;
  /** of HTTP; absent: there was no answer */
  status?: number;
  /** until the first byte of the answer */
  first_ns: number;
  total_ns: number;
  /** without those read from the provider's cache */
  tokens_in: number;
  tokens_cached: number;
  tokens_out: number;
  /** by the provider; else the tokens are estimated */
  reported: boolean;
  /** absent: no price is known */
  cost_micros?: number;
  /** absent: it went well */
  failure?: ModelFailure;
}

/** What a run has under way, and has used in the last minute, since cloved began if that is later. */
export interface ModelRun {
  id: string;
  name: string;
  owner: number;
  namespace?: string;
  /** that it has called */
  models: string[] | null;
  /** calls */
  in_flight: number;
  /** calls that wait for a provider */
  waiting: number;
  /** that ended in the last minute */
  calls: number;
  tokens_in: number;
  tokens_out: number;
  cost_micros: number;
}

/** Lists runs that use models now, at most 100: those with most calls first. */
export interface ModelTopResult {
  runs: ModelRun[];
}

/** A blob of an owner's. It is removed when nothing refers to it. */
export interface KeptBlob {
  owner: number;
  sha256: string;
  bytes: number;
  /** of messages, dead letters and keys, and of uploads of the last hour */
  references: number;
  made: Time;
}

/** A part of the blobs, in the order of their owners and digests. */
export interface BlobListResult {
  blobs: KeptBlob[];
  /** what to ask with in after; empty: these were the last */
  next?: string;
}

/** Where to go on. */
export interface AuditQueryResult {
  /** the number of the log's last record when it was read */
  last: number;
}

/** The notification of one record. */
export interface AuditRecordNote {
  id: unknown;
  /** docs/audit.md has its fields */
  record: unknown;
}

/** Where to go on. */
export interface EventResult {
  last: number;
}

/**
 * What one end adds to the installation's counters. It is stored in the event because the record
 * of a run with --rm is deleted with the run. A figure that this host cannot supply counts as 0.
 */
export interface Sum {
  /** LimitHit.Name, where a limit ended the run */
  limit?: string;
  pids_max?: number;
  cpu_ms?: number;
  net_rx_bytes?: number;
  net_tx_bytes?: number;
  /** through the gate */
  connections?: number;
  /** by the gate: connections, flows and names */
  refused?: number;
}

/**
 * One event in a run's life, as the store keeps it. Sequence numbers rise by one and are never
 * reused, so a reader can ask for everything after the last event that it has seen.
 */
export interface RunEvent {
  sequence: number;
  time: Time;
  what: string;
  id: string;
  name: string;
  owner: Owner;
  /** the run whose agent started it */
  parent?: string;
  /** after the event; empty: the run was removed */
  state?: string;
  /** of an end */
  status?: string;
  /** of an end */
  exit_code?: number;
  /** for people */
  detail?: string;
  /** of an end */
  sum?: Sum;
  /**
   * the id of the call that this follows from, correlation the id that is the same in all that
   * follows from one call, and in its audit record. Only events of grants, budgets, refusals and
   * models have them, and the request and the end that follow from a call. Of an end with the run
   * that started it, causation is the id of that run, whose own event of its end says more; of the
   * first event of a run that an agent started, too.
   */
  causation?: string;
  correlation?: string;
}

/** The notification of one event. */
export interface EventNote {
  id: unknown;
  event?: RunEvent;
  /** says that some events after the asked number are kept no longer: read the runs anew. */
  gap?: boolean;
}

/** The size of the caller's terminal. */
export interface SessionSize {
  rows: number;
  columns: number;
}

/** A change of a live run. A nil field is not changed. All changes take effect, or none. */
export interface Update {
  memory_bytes?: number;
  /** memory and swap together; nil keeps the present amount of swap on top of the memory. */
  memory_swap_bytes?: number;
  cpus?: number;
  pids?: number;
  /** the total from the agent's start; 0 removes the deadline. */
  wall_clock_ns?: number;
  /**
   * replace all rules of egress. The network mode, the host ports and the published ports cannot
   * change: their sockets exist since the start.
   */
  rules?: EgressRule[];
}

/**
 * The request for one more process in a sandbox. The process has the agent's limits, filter and
 * namespaces, a cgroup below the agent's, and the agent's ids unless others are given. It never
 * gets more rights than the agent.
 */
export interface Exec {
  command: string[] | null;
  /** KEY=VALUE, on top of the agent's */
  env?: string[];
  /** empty: the agent's */
  dir?: string;
  /** nil: the agent's; root only where the agent is root */
  user?: User;
  /** a pty, with the size of the terminal at stdin */
  terminal?: boolean;
  /** then it and all that it started is ended; 0: no limit */
  timeout_ns?: number;
  /** what it started ends with it also where it ends by itself */
  kill_rest?: boolean;
}

/** A tool with how it runs. */
export interface Definition {
  name: string;
  title?: string;
  description: string;
  /** the JSON schema of the arguments, which are an object. */
  arguments: unknown;
  /** that of the result, which is JSON then; absent: the result is text. */
  result?: unknown;
  annotations?: Annotations;
  run: string;
  where: string;
  /**
   * the template of a KindCommand: the program and its arguments. {NAME} stands for an argument of
   * the call; there is no shell.
   */
  command?: string[];
  /** bounds a call; 0: DefaultTimeout. */
  timeout_ns?: number;
  /** what a call takes of budgets' own dimensions, beside one of tool_calls. */
  costs?: { [key: string]: number };
  /** says that a grant must have the tool's name: tool:* does not cover it. */
  named?: boolean;
}

/** A supervisor's: a request of a run that is to carry a secret. */
export interface SecretUseParams {
  run: string;
  secret: string;
  host: string;
  method: string;
  path: string;
}

/** The methods agent.*. */
export interface AgentAgentMethods {
  /**
   * Returns what a run is, what it may do, what it may spend, and how many of its calls were
   * refused.
   */
  get(params?: NoParams, options?: CallOptions): Promise<AgentResult>;
  /**
   * Says that the agent is ready, for runs that come after it with the condition ready. It holds
   * until the agent ends. A repetition changes nothing.
   */
  ready(params?: NoParams, options?: CallOptions): Promise<void>;
  /**
   * Gives another run a task, with parts of grants and a reservation, which the agent then has no
   * more. A run below this one has them at once. One of the same user and namespace, for which the
   * agent has a grant of kind send, has them when it accepts. Either gets the task with
   * agent.accept.
   */
  handoff(params: Omit<HandoffParams, "run">, options?: CallOptions): Promise<HandoffResult>;
  /**
   * Accepts a task that another run has offered to this one, with what goes with it. Each offer is
   * accepted once.
   */
  accept(params: Omit<AcceptParams, "run">, options?: CallOptions): Promise<AcceptResult>;
  /**
   * Takes back an offer that the run has made and that is not accepted yet. Where what goes with
   * it is the other run's already, which is below this one, the answer is the error conflict.
   */
  withdraw(params: Omit<WithdrawParams, "run">, options?: CallOptions): Promise<void>;
  /**
   * Lists the tasks that were offered to the run and are not accepted, in parts of at most 8. With
   * wait the answer comes when there is one.
   */
  offers(params?: Omit<OfferListParams, "run">, options?: CallOptions): Promise<OfferListResult>;
  /** Yields the offers of all parts of agent.offers, in as many calls as that takes. */
  offersAll(params?: Omit<OfferListParams, "run">, options?: CallOptions): AsyncGenerator<Offer, void, void>;
  /**
   * Starts a child from a manifest that a spawn grant of the agent's holds, narrower by what the
   * parameters name, and in nothing with more than the agent itself has. The notification
   * agent.ended reports its end. It needs cloved.
   */
  spawn(params: Omit<SpawnParams, "run">, options?: CallOptions): Promise<SpawnResult>;
  /**
   * Returns how a descendant ended, with the end of its output and its result, when it has. The
   * call waits also while cloved is away.
   */
  wait(params: Omit<ChildParams, "run">, options?: CallOptions): Promise<ChildEnd>;
  /** Sends a descendant a signal, or ends it with status policy-kill or budget. */
  signal(params: Omit<ChildSignalParams, "run">, options?: CallOptions): Promise<void>;
  /**
   * Lists the children of a run, with those that have ended. If there are more, the answer has
   * next, and the same request with that as after returns the following part.
   */
  list(params?: Omit<ChildListParams, "run">, options?: CallOptions): Promise<ChildListResult>;
  /** Yields the children of all parts of agent.list, in as many calls as that takes. */
  listAll(params?: Omit<ChildListParams, "run">, options?: CallOptions): AsyncGenerator<Child, void, void>;
  /** Lists all runs below a run, each behind its parent. It continues as agent.list. */
  tree(params?: Omit<ChildListParams, "run">, options?: CallOptions): Promise<ChildListResult>;
  /** Yields the children of all parts of agent.tree, in as many calls as that takes. */
  treeAll(params?: Omit<ChildListParams, "run">, options?: CallOptions): AsyncGenerator<Child, void, void>;
  /** Gives the result of the run to what started it, once: agent.wait returns it. */
  result(params: Omit<ResultParams, "run">, options?: CallOptions): Promise<void>;
  /**
   * Copies what a run below the caller's has changed in its files to a path of the caller's, with
   * the caller's rights: a live run, which is frozen while it is read, or one that has ended and
   * whose layer is kept. Below the path the files have the paths that they had inside. At the path
   * must be nothing, or an empty folder, and what is copied appears as a whole. Deletions,
   * devices, pipes, sockets and what the run itself may not read are left out, and named in the
   * answer.
   */
  collect(params: Omit<CollectParams, "run">, options?: CallOptions): Promise<CollectResult>;
  /**
   * Copies a file or folder that a live run of the namespace keeps with its home to a path of the
   * caller's: it is read with that run's rights through its own mount, and written with the
   * caller's. It needs a grant file:RUN:FOLDER, as file:noter:/memory. Below the path the files
   * have the paths that they had inside. At the path must be nothing, or an empty folder, and what
   * is copied appears as a whole, or nothing where something of it cannot be copied, as a pipe.
   */
  fetch(params: Omit<FetchParams, "run">, options?: CallOptions): Promise<void>;
  /**
   * Asks people to write the run's changes back to its workspace on the host, and waits for them;
   * the run was started with --ask apply. They are written as run.apply does, with the rights of
   * the run's owner, if they are still exactly what people saw. What a program of the host's
   * executes by itself, and what the next agent follows, is left out. It needs cloved.
   */
  apply(params?: Omit<OwnApplyParams, "run">, options?: CallOptions): Promise<OwnApplyResult>;
}

/** The methods tool.*. */
export interface AgentToolMethods {
  /**
   * Lists the tools that a run's grants cover, with the schemas of their arguments. If there are
   * more, the answer has next, and the same request with that as after returns the following part.
   */
  list(params?: Omit<ToolListParams, "run">, options?: CallOptions): Promise<ToolListResult>;
  /** Yields the tools of all parts of tool.list, in as many calls as that takes. */
  listAll(params?: Omit<ToolListParams, "run">, options?: CallOptions): AsyncGenerator<Tool, void, void>;
  /**
   * Calls a tool that a grant tool:NAME covers, and returns what it gave when it has ended. It
   * counts as one of the budget's tool_calls. In a run with --ask tool it waits for people's yes
   * first, unless the tool changes nothing. The end of the call, as by cancel, ends the tool with
   * all that it has started. Of two calls with one key the second is refused: the answer of the
   * first is not kept.
   */
  call(params: Omit<ToolCallParams, "run">, options?: CallOptions): Promise<ToolCallResult>;
}

/** The methods grant.*. */
export interface AgentGrantMethods {
  /**
   * Lists what a run may do: the rules of its network that allow something, and its grants, oldest
   * first. If there are more, the answer has next, and the same request with that as after returns
   * the following part.
   */
  list(params?: Omit<GrantListParams, "run">, options?: CallOptions): Promise<GrantListResult>;
  /** Yields the grants of all parts of grant.list, in as many calls as that takes. */
  listAll(params?: Omit<GrantListParams, "run">, options?: CallOptions): AsyncGenerator<Grant, void, void>;
  /** Makes a narrower grant from one that the run holds. */
  derive(params: Omit<GrantDeriveParams, "run">, options?: CallOptions): Promise<GrantResult>;
  /**
   * Takes a grant back, with all that was derived from it. An agent may revoke only what it
   * derived itself.
   */
  revoke(params: Omit<GrantRevokeParams, "run">, options?: CallOptions): Promise<GrantRevokeResult>;
  /**
   * Says whether a run may do one thing, and why; of the network what its gate would decide, by
   * its rules and its grants. Nothing is used up.
   */
  check(params: Omit<GrantCheckParams, "run">, options?: CallOptions): Promise<GrantCheckResult>;
}

/** The methods budget.*. */
export interface AgentBudgetMethods {
  /** Returns every budget that the run spends from. */
  get(params?: NoParams, options?: CallOptions): Promise<BudgetResult>;
  /** Sets amounts of own dimensions aside, all or none. */
  reserve(params: Omit<BudgetReserveParams, "run">, options?: CallOptions): Promise<BudgetReserveResult>;
  /**
   * Says what was used of a reservation; the rest is free again. More than was reserved counts as
   * with budget.charge.
   */
  settle(params: Omit<BudgetSettleParams, "run">, options?: CallOptions): Promise<BudgetResult>;
  /** Frees a reservation of which nothing was used. */
  release(params: Omit<BudgetReleaseParams, "run">, options?: CallOptions): Promise<BudgetResult>;
  /**
   * Records what was used of own dimensions. It may exceed the run's own limit, because it has
   * happened; then at_end is done. In accounts above the run it counts at most what is left of
   * that limit and there; a run without a limit of its own is refused what is not left there, and
   * every run where nothing is.
   */
  charge(params: Omit<BudgetChargeParams, "run">, options?: CallOptions): Promise<BudgetResult>;
}

/** The methods mail.*. */
export interface AgentMailMethods {
  /**
   * Sends a message, which is durable when the call is answered. It needs a grant of kind send
   * that covers the receiver. A full mailbox refuses it. With wake it starts a run for a reserved
   * name that has a manifest and that no run holds.
   */
  send(params: Omit<MailSendParams, "run">, options?: CallOptions): Promise<MailSendResult>;
  /**
   * Returns messages of the agent's mailbox when there are some: those of a higher priority first,
   * of one sender in the order in which it sent them. They come again until they are acknowledged.
   */
  receive(params?: Omit<MailReceiveParams, "run">, options?: CallOptions): Promise<MailReceiveResult>;
  /**
   * Takes messages out of the agent's mailbox, all or none; with reject they become dead letters.
   * The calls in then are done with that in one transaction: where one is refused, nothing has
   * happened.
   */
  ack(params: Omit<MailAckParams, "run">, options?: CallOptions): Promise<MailAckResult>;
  /** Answers a message that asks, once. It needs no grant. */
  reply(params: Omit<MailReplyParams, "run">, options?: CallOptions): Promise<MailSendResult>;
  /** Returns the answer to a message that the agent sent with asks, when it has come. */
  answer(params: Omit<MailAnswerParams, "run">, options?: CallOptions): Promise<MailAnswerResult>;
  /**
   * Has the run get a copy of each message to the topic T of its namespace, until it ends. It
   * needs a grant of kind name that covers topic/T.
   */
  subscribe(params: Omit<MailTopicParams, "run">, options?: CallOptions): Promise<void>;
  /** Ends a subscription of the run. What has come stays. */
  unsubscribe(params: Omit<MailTopicParams, "run">, options?: CallOptions): Promise<void>;
  /**
   * Sends a message to each run that has subscribed to the topic T, and says how many have it and
   * how many mailboxes were full. It needs a grant of kind send that covers topic/T, and costs one
   * message.
   */
  publish(params: Omit<MailPublishParams, "run">, options?: CallOptions): Promise<MailPublishResult>;
}

/** The methods job.*. */
export interface AgentJobMethods {
  /**
   * Adds a job to a queue of the run's namespace, which is durable when the call is answered. It
   * needs a grant of kind send that covers job/QUEUE, and costs one message. A full queue refuses
   * it.
   */
  add(params: Omit<JobAddParams, "run">, options?: CallOptions): Promise<JobResult>;
  /**
   * Takes the next job of a queue of the run's namespace when there is one: of a higher priority
   * first, and else in the order in which they were added. The run holds it until it completes or
   * fails it, ends, or its lease runs out. It needs a grant of kind name that covers job/QUEUE.
   * With a key, a repetition returns the same job.
   */
  claim(params: Omit<JobClaimParams, "run">, options?: CallOptions): Promise<JobResult>;
  /** Begins the lease of a job that the run holds anew. */
  renew(params: Omit<JobParams, "run">, options?: CallOptions): Promise<JobResult>;
  /**
   * Ends a job that the run holds: it is done. The calls in then are done with that in one
   * transaction: where one is refused, nothing has happened.
   */
  complete(params: Omit<JobCompleteParams, "run">, options?: CallOptions): Promise<JobCompleteResult>;
  /** Gives a job that the run holds back: it is tried again after a pause, or it is dead. */
  fail(params: Omit<JobFailParams, "run">, options?: CallOptions): Promise<JobResult>;
  /** Returns a job that the run holds, or that it has added. */
  get(params: Omit<JobGetParams, "run">, options?: CallOptions): Promise<JobResult>;
  /** Lists the jobs that the run holds, without their bodies. */
  list(params?: NoParams, options?: CallOptions): Promise<JobListResult>;
}

/** The methods queue.*. */
export interface AgentQueueMethods {
  /**
   * Makes a queue of the run's namespace, or replaces the settings of one that the run has made.
   * It needs a grant of kind name that covers job/QUEUE, and with a manifest one of kind spawn
   * that covers that. What is started for its jobs are children of the run, and held against it as
   * those of agent.spawn. When the run ends nothing is started any more, and an empty queue goes.
   */
  open(params: Omit<QueueOpenParams, "run">, options?: CallOptions): Promise<QueueResult>;
  /** Removes a queue that the run has made and that has no jobs to be done and no dead ones. */
  close(params: Omit<QueueCloseParams, "run">, options?: CallOptions): Promise<void>;
}

/** The methods name.*. */
export interface AgentNameMethods {
  /**
   * Gives the run a name in its namespace until it ends, or other tags for one that it has. It
   * needs a grant of kind name that covers it. Runs that hold the same name take turns.
   */
  register(params: Omit<NameRegisterParams, "run">, options?: CallOptions): Promise<NameResult>;
  /** Takes a name from the run. */
  release(params: Omit<NameParams, "run">, options?: CallOptions): Promise<void>;
  /** Returns a name of the run's namespace, with the runs that hold it. */
  lookup(params: Omit<NameLookupParams, "run">, options?: CallOptions): Promise<NameResult>;
  /**
   * Lists the names of the run's namespace. If there are more, the answer has next, and the same
   * request with that as after returns the following part.
   */
  list(params?: Omit<NameListParams, "run">, options?: CallOptions): Promise<NameListResult>;
  /** Yields the names of all parts of name.list, in as many calls as that takes. */
  listAll(params?: Omit<NameListParams, "run">, options?: CallOptions): AsyncGenerator<Name, void, void>;
}

/** The methods approval.*. */
export interface AgentApprovalMethods {
  /**
   * Lists the questions to people that the run has, and their answers. If there are more, the
   * answer has next, and the same request with that as after returns the following part.
   */
  own(params?: Omit<ApprovalOwnParams, "run">, options?: CallOptions): Promise<ApprovalListResult>;
  /** Yields the approvals of all parts of approval.own, in as many calls as that takes. */
  ownAll(params?: Omit<ApprovalOwnParams, "run">, options?: CallOptions): AsyncGenerator<Approval, void, void>;
  /** Takes back a question of the run that waits. What asked is refused. */
  cancel(params: Omit<ApprovalCancelParams, "run">, options?: CallOptions): Promise<void>;
}

/** The methods state.*. */
export interface AgentStateMethods {
  /**
   * Returns a key with its value and its version, which is 0 where there is none. Keys of the
   * scopes name and namespace, which other runs share, need a grant of kind state, such as
   * state:/namespace/plans:ro, for all of these methods.
   */
  get(params: Omit<StateGetParams, "run">, options?: CallOptions): Promise<StateResult>;
  /**
   * Sets a key, which is durable when the call is answered. With if_version only if the key has
   * that version, else the answer is the error conflict.
   */
  set(params: Omit<StateSetParams, "run">, options?: CallOptions): Promise<StateSetResult>;
  /** Removes a key, with if_version as state.set. */
  delete(params: Omit<StateDeleteParams, "run">, options?: CallOptions): Promise<StateDeleteResult>;
  /**
   * Lists the key at a path and those below it, without their values. If there are more, the
   * answer has next, and the same request with that as after returns the following part.
   */
  list(params?: Omit<StateListParams, "run">, options?: CallOptions): Promise<StateListResult>;
  /** Yields the keys of all parts of state.list, in as many calls as that takes. */
  listAll(params?: Omit<StateListParams, "run">, options?: CallOptions): AsyncGenerator<StateEntry, void, void>;
  /**
   * Returns a key when its version is above the given one, or when it is gone and the given one is
   * above 0. That a key expires does not wake a call that waits: the caller bounds the wait with
   * within_ms, and asks again.
   */
  watch(params: Omit<StateWatchParams, "run">, options?: CallOptions): Promise<StateResult>;
}

/** The methods blob.*. */
export interface AgentBlobMethods {
  /**
   * Begins an upload of a blob: a body of up to 64 MiB, which mail.send and state.set name by its
   * SHA-256. Its bytes count as write_bytes at once. The upload expires after an hour, and ends
   * with the run.
   */
  open(params: Omit<BlobOpenParams, "run">, options?: CallOptions): Promise<BlobOpenResult>;
  /**
   * Writes a part of an upload, of at most 36 KiB. The parts come in their order; one may be
   * written again.
   */
  write(params: Omit<BlobWriteParams, "run">, options?: CallOptions): Promise<BlobWriteResult>;
  /**
   * Ends an upload, and returns the SHA-256 of the blob, which is durable then. The run may name
   * it for an hour; bodies that do keep it.
   */
  close(params: Omit<BlobCloseParams, "run">, options?: CallOptions): Promise<BlobResult>;
  /**
   * Makes a blob of a file of the agent's, as blob.open, blob.write and blob.close do. It is read
   * with the agent's rights, at the path that the agent sees.
   */
  take(params: Omit<BlobTakeParams, "run">, options?: CallOptions): Promise<BlobResult>;
  /**
   * Returns a part of a blob to which a message in the agent's mailbox, a key of its run or an
   * upload of its own refers; or a key that the call names and that the agent may read. Any other
   * blob is as one that there is not.
   */
  read(params: Omit<BlobReadParams, "run">, options?: CallOptions): Promise<BlobReadResult>;
  /**
   * Writes a blob that the agent may read to a new file, with the agent's rights, at the path that
   * the agent sees.
   */
  save(params: Omit<BlobSaveParams, "run">, options?: CallOptions): Promise<BlobResult>;
}

/** The methods model.*. */
export interface AgentModelMethods {
  /**
   * Returns the run's calls of models that wait for their turn: the position of each, and how long
   * it is expected to wait.
   */
  queue(params?: NoParams, options?: CallOptions): Promise<ModelQueueResult>;
}

/** The methods event.*. */
export interface AgentEventMethods {
  /**
   * Adds an event of the agent's own, which is durable when the call is answered, and may name the
   * event, call or message that it follows from. The newest 256 of a run are kept; all are in the
   * audit log, without their bodies. It costs one message.
   */
  append(params: Omit<EventAppendParams, "run">, options?: CallOptions): Promise<EventAppendResult>;
  /**
   * Returns from what an event, a call, a message or a run follows, step by step as far as the
   * agent may see: its own calls, those of runs below it, and what sent it mail. With down what
   * follows from it, as far as that is the agent's own or a run's below it. The newest 32 MiB of
   * the audit log are searched.
   */
  trace(params: Omit<TraceParams, "run">, options?: CallOptions): Promise<TraceResult>;
}

/** The methods audit.*. */
export interface AgentAuditMethods {
  /**
   * Returns records of the audit log about a namespace of the run's owner. An agent needs a grant
   * of kind audit that covers it. If there is more, the answer has next, and the same request with
   * that as after returns the following part, which may be empty.
   */
  read(params: Omit<AuditReadParams, "run">, options?: CallOptions): Promise<AuditReadResult>;
  /** Yields the records of all parts of audit.read, in as many calls as that takes. */
  readAll(params: Omit<AuditReadParams, "run">, options?: CallOptions): AsyncGenerator<unknown, void, void>;
}

/** Every method: those of agent.* themselves, the others by their noun. */
export interface AgentMethods extends AgentAgentMethods {
  readonly tool: AgentToolMethods;
  readonly grant: AgentGrantMethods;
  readonly budget: AgentBudgetMethods;
  readonly mail: AgentMailMethods;
  readonly job: AgentJobMethods;
  readonly queue: AgentQueueMethods;
  readonly name: AgentNameMethods;
  readonly approval: AgentApprovalMethods;
  readonly state: AgentStateMethods;
  readonly blob: AgentBlobMethods;
  readonly model: AgentModelMethods;
  readonly event: AgentEventMethods;
  readonly audit: AgentAuditMethods;
}

/** The methods daemon.*. */
export interface ClovedDaemonMethods {
  /** Describes this cloved: versions, directories, and the number of runs in each state. */
  info(params?: NoParams, options?: CallOptions): Promise<InfoResult>;
  /**
   * Returns daemon.info with the numbers of events, mailboxes, messages, names, grants and
   * budgets; for root of everybody's, for others of their own.
   */
  summary(params?: NoParams, options?: CallOptions): Promise<SummaryResult>;
  /** Reads the configuration anew. A file with a mistake changes nothing. */
  reload(params?: NoParams, options?: CallOptions): Promise<void>;
  /**
   * With on, cloved starts nothing more: new runs wait in the queue, and running agents continue.
   * With off, it starts again. The setting survives a restart of cloved.
   */
  drain(params: DrainParams, options?: CallOptions): Promise<void>;
  /**
   * Kills every agent of the installation at once, with the reason in each record, and lets
   * nothing start until it is called with clear. It survives a restart of cloved and of the host.
   */
  panic(params?: PanicParams, options?: CallOptions): Promise<PanicResult>;
  /**
   * Writes a consistent copy of kernel.db, which cloved alone has open, to a file that does not
   * exist yet. clove backup calls it.
   */
  backup(params: BackupParams, options?: CallOptions): Promise<void>;
  /** Checks kernel.db, which cloved alone has open. clove check calls it. */
  check(params?: NoParams, options?: CallOptions): Promise<CheckResult>;
  /**
   * Returns one part of cloved's internal state (clove debug requests all of them). No part
   * contains an agent's input or output.
   */
  debug(params: DebugParams, options?: CallOptions): Promise<DebugResult>;
}

/** The methods run.*. */
export interface ClovedRunMethods {
  /**
   * Stores a run and starts it as the queue allows. The answer comes when the agent executes, or
   * at once with state queued and the reason if it has to wait for more than other starts.
   */
  start(params: StartParams, options?: CallOptions): Promise<RunResult>;
  /**
   * Lists the caller's runs, newest first, without their environment; root sees all. An answer has
   * a part of them: if there are more it has next, and the same request with that as after returns
   * the following part.
   */
  list(params?: ListParams, options?: CallOptions): Promise<ListResult>;
  /** Yields the runs of all parts of run.list, in as many calls as that takes. */
  listAll(params?: ListParams, options?: CallOptions): AsyncGenerator<Run, void, void>;
  /**
   * Returns everything that is known of one run. Values of the environment that look like secrets
   * are redacted, here and in every answer with a run.
   */
  get(params: RunParams, options?: CallOptions): Promise<RunResult>;
  /** Answers with the record when the run has ended and no policy starts it again. */
  wait(params: RunParams, options?: CallOptions): Promise<WaitResult>;
  /**
   * Removes a run that has ended or waits: record, layer, log and name. With force, a live run is
   * killed first.
   */
  remove(params: RemoveParams, options?: CallOptions): Promise<void>;
  /** Renames a run that does not execute. */
  rename(params: RenameParams, options?: CallOptions): Promise<RunResult>;
  /** Removes the caller's ended runs; for root, all ended runs. */
  prune(params?: NoParams, options?: CallOptions): Promise<PruneResult>;
  /**
   * Ends a run: TERM, the grace period, then KILL to every process. Answers when it has ended. Its
   * restart policy and schedule are suspended until run.restart.
   */
  stop(params: StopParams, options?: CallOptions): Promise<void>;
  /**
   * Sends the agent a signal. KILL ends all of its processes. KILL and TERM suspend its restart
   * policy. So does policy, which ends it with status policy-kill.
   */
  signal(params: SignalParams, options?: CallOptions): Promise<void>;
  /**
   * Ends the run if it lives, and starts it again with the files that it wrote. A waiting run is
   * started now, if there is room. Its policy and its schedule are active again.
   */
  restart(params: RestartParams, options?: CallOptions): Promise<RunResult>;
  /** Freezes every process of a live run. Its wall clock continues. */
  pause(params: RunParams, options?: CallOptions): Promise<void>;
  /** Resumes a paused run. */
  resume(params: RunParams, options?: CallOptions): Promise<void>;
  /** Changes limits and network rules of a live run: everything that is named, or nothing. */
  update(params: UpdateParams, options?: CallOptions): Promise<RunResult>;
  /**
   * Returns what a live run uses now and has used since its start. A figure that this host cannot
   * supply is absent.
   */
  stats(params: RunParams, options?: CallOptions): Promise<StatsResult>;
  /** Lists the processes of a live run, with the ids that they have inside. */
  processes(params: RunParams, options?: CallOptions): Promise<ProcessesResult>;
  /**
   * Returns the run's output, line by line, as run.log notifications; with follow until it has
   * ended and is not restarted.
   */
  logs(params: LogsParams, options?: CallOptions): Stream<LogNote, void>;
  /**
   * Attaches to the streams of a live run: its output from now on, and its input if it keeps one
   * open. Detaching changes nothing for the agent.
   */
  attach(params: AttachParams, options?: CallOptions): Session<AttachResult>;
  /**
   * Runs one more process in a live run's sandbox, with the same isolation and limits. It, and all
   * that it started, is ended with the session, unless it is detached.
   */
  exec(params: ExecParams, options?: CallOptions): Session<ExecResult>;
  /**
   * Unpacks the session's input, a tar archive, in a folder of a live run; the agent owns the
   * files.
   */
  copyIn(params: CopyParams, options?: CallOptions): Session<void>;
  /**
   * Returns a file or folder of a run as a tar archive. After its end a run has only what it made
   * or changed, so of a folder that the host has as well that is all.
   */
  copyOut(params: CopyParams, options?: CallOptions): Session<void>;
  /**
   * Returns what the run changed in its files, as run.change notifications. lost/ID in place of a
   * run names a layer without a record; run.apply takes it, too. A live run is frozen while it is
   * read, for at most two minutes. Of the host's side of the workspace, the caller sees only what
   * it may read.
   */
  diff(params: DiffParams, options?: CallOptions): Stream<ChangeNote, DiffResult>;
  /**
   * Writes the workspace's changes back to the host's directory with the caller's own ids, and
   * reports as run.change notifications what was written and what was refused, and why. A file
   * that a program of the host would execute by itself, such as a git hook (executed_by in a
   * change), that the next agent would follow, such as AGENTS.md (instructs), or that may be
   * either (unknown) is refused unless the parameters allow it. A change of type ref is the branch
   * of a workspace whose .git is a file: its commits are taken over, and the branch is moved,
   * unless the host moved it. A live run is frozen meanwhile.
   */
  apply(params: ApplyParams, options?: CallOptions): Stream<ChangeNote, ApplyResult>;
}

/** The methods home.*. */
export interface ClovedHomeMethods {
  /**
   * Lists the homes that are kept for runs with Files.Home: those of the caller, to root all.
   * Nothing in a home is read for that.
   */
  list(params?: NoParams, options?: CallOptions): Promise<HomesResult>;
  /** Removes a kept home that no run has. Root removes everybody's by their ids. */
  remove(params: HomeParams, options?: CallOptions): Promise<void>;
}

/** The methods agent.*. */
export interface ClovedAgentMethods {
  /**
   * Returns what a run is, what it may do, what it may spend, and how many of its calls were
   * refused.
   */
  get(params: RunParams, options?: CallOptions): Promise<AgentResult>;
  /**
   * Lists the children of a run, with those that have ended. If there are more, the answer has
   * next, and the same request with that as after returns the following part.
   */
  list(params: ChildListParams, options?: CallOptions): Promise<ChildListResult>;
  /** Yields the children of all parts of agent.list, in as many calls as that takes. */
  listAll(params: ChildListParams, options?: CallOptions): AsyncGenerator<Child, void, void>;
  /** Lists all runs below a run, each behind its parent. It continues as agent.list. */
  tree(params: ChildListParams, options?: CallOptions): Promise<ChildListResult>;
  /** Yields the children of all parts of agent.tree, in as many calls as that takes. */
  treeAll(params: ChildListParams, options?: CallOptions): AsyncGenerator<Child, void, void>;
}

/** The methods manifest.*. */
export interface ClovedManifestMethods {
  /**
   * Keeps a manifest of the caller's, which agents with a spawn grant of its name may start.
   * Grants that were given before hold what the name meant then.
   */
  add(params: ManifestAddParams, options?: CallOptions): Promise<ManifestResult>;
  /**
   * Lists the manifests that the caller has added, also those that newer ones of the same name
   * have replaced. If there are more, the answer has next, and the same request with that as after
   * returns the following part.
   */
  list(params?: ManifestListParams, options?: CallOptions): Promise<ManifestListResult>;
  /** Yields the manifests of all parts of manifest.list, in as many calls as that takes. */
  listAll(params?: ManifestListParams, options?: CallOptions): AsyncGenerator<AddedManifest, void, void>;
  /**
   * Forgets a manifest with those that it has replaced. Agents start nothing of it from now on;
   * runs of it go on.
   */
  remove(params: ManifestNameParams, options?: CallOptions): Promise<ManifestRemoveResult>;
}

/** The methods tool.*. */
export interface ClovedToolMethods {
  /**
   * Keeps a tool of the caller's, a command, which agents of the caller's with a grant of its name
   * may call. One of the same name is refused: remove it first.
   */
  add(params: ToolAddParams, options?: CallOptions): Promise<ToolResult>;
  /** Returns a tool of the caller's, or one that is built in. */
  show(params: ToolShowParams, options?: CallOptions): Promise<ToolResult>;
  /**
   * Lists the tools that are built in and those that the caller has added. If there are more, the
   * answer has next, and the same request with that as after returns the following part.
   */
  kept(params?: ToolKeptParams, options?: CallOptions): Promise<ToolKeptResult>;
  /** Yields the tools of all parts of tool.kept, in as many calls as that takes. */
  keptAll(params?: ToolKeptParams, options?: CallOptions): AsyncGenerator<KeptTool, void, void>;
  /** Forgets a tool of the caller's. Calls that are at work come to their end. */
  remove(params: ToolNameParams, options?: CallOptions): Promise<void>;
  /**
   * Lists the tools that a run's grants cover, with the schemas of their arguments. If there are
   * more, the answer has next, and the same request with that as after returns the following part.
   */
  list(params: ToolListParams, options?: CallOptions): Promise<ToolListResult>;
  /** Yields the tools of all parts of tool.list, in as many calls as that takes. */
  listAll(params: ToolListParams, options?: CallOptions): AsyncGenerator<Tool, void, void>;
  /**
   * Calls a tool that a grant tool:NAME covers, and returns what it gave when it has ended. It
   * counts as one of the budget's tool_calls. In a run with --ask tool it waits for people's yes
   * first, unless the tool changes nothing. The end of the call, as by cancel, ends the tool with
   * all that it has started. Of two calls with one key the second is refused: the answer of the
   * first is not kept.
   */
  call(params: ToolCallParams, options?: CallOptions): Promise<ToolCallResult>;
}

/** The methods grant.*. */
export interface ClovedGrantMethods {
  /**
   * Lists what a run may do: the rules of its network that allow something, and its grants, oldest
   * first. If there are more, the answer has next, and the same request with that as after returns
   * the following part.
   */
  list(params: GrantListParams, options?: CallOptions): Promise<GrantListResult>;
  /** Yields the grants of all parts of grant.list, in as many calls as that takes. */
  listAll(params: GrantListParams, options?: CallOptions): AsyncGenerator<Grant, void, void>;
  /** Gives a run a grant. A net grant acts at once on a run that has an agent socket. */
  give(params: GrantGiveParams, options?: CallOptions): Promise<GrantResult>;
  /** Makes a narrower grant from one that the run holds. */
  derive(params: GrantDeriveParams, options?: CallOptions): Promise<GrantResult>;
  /**
   * Takes a grant back, with all that was derived from it. An agent may revoke only what it
   * derived itself.
   */
  revoke(params: GrantRevokeParams, options?: CallOptions): Promise<GrantRevokeResult>;
  /**
   * Says whether a run may do one thing, and why; of the network what its gate would decide, by
   * its rules and its grants. Nothing is used up.
   */
  check(params: GrantCheckParams, options?: CallOptions): Promise<GrantCheckResult>;
}

/** The methods budget.*. */
export interface ClovedBudgetMethods {
  /** Returns every budget that the run spends from. */
  get(params: RunParams, options?: CallOptions): Promise<BudgetResult>;
  /** Sets amounts of own dimensions aside, all or none. */
  reserve(params: BudgetReserveParams, options?: CallOptions): Promise<BudgetReserveResult>;
  /**
   * Says what was used of a reservation; the rest is free again. More than was reserved counts as
   * with budget.charge.
   */
  settle(params: BudgetSettleParams, options?: CallOptions): Promise<BudgetResult>;
  /** Frees a reservation of which nothing was used. */
  release(params: BudgetReleaseParams, options?: CallOptions): Promise<BudgetResult>;
  /**
   * Records what was used of own dimensions. It may exceed the run's own limit, because it has
   * happened; then at_end is done. In accounts above the run it counts at most what is left of
   * that limit and there; a run without a limit of its own is refused what is not left there, and
   * every run where nothing is.
   */
  charge(params: BudgetChargeParams, options?: CallOptions): Promise<BudgetResult>;
  /** Adds to what is granted to a run. A run that was paused for it goes on. */
  raise(params: BudgetRaiseParams, options?: CallOptions): Promise<BudgetResult>;
  /** Sets what a run has used of dimensions back to zero. */
  reset(params: BudgetResetParams, options?: CallOptions): Promise<BudgetResult>;
  /**
   * Sets what all runs of a user, of a namespace or with a name may spend together, or with reset
   * what they have used back to zero. Root sets the budget of a user, and a user those below it;
   * only root changes or resets a limit that another user set.
   */
  set(params: BudgetSetParams, options?: CallOptions): Promise<BudgetResult>;
  /**
   * Lists what accounts may spend and have spent, with all accounts below them. If there are more,
   * the answer has next, and the same request with that as after returns the following part.
   */
  list(params?: BudgetListParams, options?: CallOptions): Promise<BudgetListResult>;
  /** Yields the budgets of all parts of budget.list, in as many calls as that takes. */
  listAll(params?: BudgetListParams, options?: CallOptions): AsyncGenerator<Budget, void, void>;
  /**
   * Returns what users' runs spent by day and dimension, for the last 400 days on which something
   * was spent; of everybody's for root, of one's own for others. If there is more, the answer has
   * next, and the same request with that as after returns the following part.
   */
  report(params?: BudgetReportParams, options?: CallOptions): Promise<BudgetReportResult>;
  /** Yields the days of all parts of budget.report, in as many calls as that takes. */
  reportAll(params?: BudgetReportParams, options?: CallOptions): AsyncGenerator<DaySum, void, void>;
  /**
   * Returns which runs spent most of each dimension in the last minute; of everybody's for root,
   * of one's own for others.
   */
  top(params?: BudgetTopParams, options?: CallOptions): Promise<BudgetTopResult>;
}

/** The methods mail.*. */
export interface ClovedMailMethods {
  /**
   * Lists the mailboxes of the caller's runs and names, to root all. A run has one from the first
   * message to it on. If there are more, the answer has next, and the same request with that as
   * after returns the following part.
   */
  boxes(params?: MailBoxesParams, options?: CallOptions): Promise<MailBoxesResult>;
  /** Yields the mailboxes of all parts of mail.boxes, in as many calls as that takes. */
  boxesAll(params?: MailBoxesParams, options?: CallOptions): AsyncGenerator<Mailbox, void, void>;
  /**
   * Returns the messages of a mailbox that its receiver has not acknowledged, and takes none out.
   * If there are more, the answer has next, and the same request with that as after returns the
   * following part.
   */
  read(params: MailReadParams, options?: CallOptions): Promise<MailReadResult>;
  /** Yields the messages of all parts of mail.read, in as many calls as that takes. */
  readAll(params: MailReadParams, options?: CallOptions): AsyncGenerator<Mail, void, void>;
  /**
   * Sends a message to a run or a name of the caller's, or for root of a user's. Its sender is the
   * user, as uid:NUMBER.
   */
  post(params: MailPostParams, options?: CallOptions): Promise<MailSendResult>;
  /**
   * Lists messages that have expired or that their receivers have rejected. If there are more, the
   * answer has next, and the same request with that as after returns the following part.
   */
  dead(params?: MailDeadParams, options?: CallOptions): Promise<MailDeadResult>;
  /** Yields the letters of all parts of mail.dead, in as many calls as that takes. */
  deadAll(params?: MailDeadParams, options?: CallOptions): AsyncGenerator<DeadLetter, void, void>;
  /** Puts a dead letter back into its mailbox, at its place. It does not expire again. */
  requeue(params: MailLetterParams, options?: CallOptions): Promise<void>;
  /** Removes a dead letter. */
  discard(params: MailLetterParams, options?: CallOptions): Promise<void>;
}

/** The methods name.*. */
export interface ClovedNameMethods {
  /**
   * Keeps a name of the caller's, or for root of a user's, also while no run holds it: mail to it
   * waits for a run that does. With a manifest, mail with wake starts a run of it. A repetition
   * replaces the tags and the manifest.
   */
  reserve(params: NameReserveParams, options?: CallOptions): Promise<NameResult>;
  /**
   * Lists the names of the caller's namespaces, to root all, with the runs that hold them. If
   * there are more, the answer has next, and the same request with that as after returns the
   * following part.
   */
  query(params?: NameQueryParams, options?: CallOptions): Promise<NameListResult>;
  /** Yields the names of all parts of name.query, in as many calls as that takes. */
  queryAll(params?: NameQueryParams, options?: CallOptions): AsyncGenerator<Name, void, void>;
  /**
   * Takes a name from all runs that hold it, and ends its reservation. A name whose mailbox is not
   * empty is not removed.
   */
  remove(params: NameRemoveParams, options?: CallOptions): Promise<void>;
}

/** The methods secret.*. */
export interface ClovedSecretMethods {
  /**
   * Keeps a secret of the caller's, encrypted, with the hosts and the requests that may carry it.
   * No answer and no log has its value.
   */
  set(params: SecretSetParams, options?: CallOptions): Promise<SecretResult>;
  /** Gives a secret another value. Runs that use it have that with their next request. */
  rotate(params: SecretRotateParams, options?: CallOptions): Promise<SecretResult>;
  /** Forgets a secret. Runs that use it can do so no more. */
  remove(params: SecretNameParams, options?: CallOptions): Promise<void>;
  /** Lists secrets without their values, with the last use of each. */
  list(params?: SecretListParams, options?: CallOptions): Promise<SecretListResult>;
  /**
   * Says which secrets of the caller's cannot be used: whose value cannot be decrypted, that have
   * expired, or whose uses are used up.
   */
  check(params?: NoParams, options?: CallOptions): Promise<SecretCheckResult>;
  /**
   * Lists the requests that carried secrets of the caller's, newest first, at most 256 of each
   * secret.
   */
  uses(params?: SecretUsesParams, options?: CallOptions): Promise<SecretUsesResult>;
  /** A supervisor's: lets a request of a run carry a secret, and counts the use. */
  use(params: SecretUseParams, options?: CallOptions): Promise<SecretUseResult>;
  /**
   * A supervisor's: returns the secrets that its run was started with. cloved says `kernel.ready`,
   * the supervisor passes the writing end of a pipe with one byte, and cloved writes the values to
   * it, for the process that puts them into requests. The answer has none.
   */
  open(params: SecretOpenParams, options?: CallOptions): Session<SecretOpenResult>;
}

/** The methods approval.*. */
export interface ClovedApprovalMethods {
  /**
   * Asks people about a connection of a run that no rule covers, for the run's supervisor. An
   * equal question of the run is asked once, and its answer holds for all.
   */
  ask(params: ApprovalAskParams, options?: CallOptions): Promise<ApprovalResult>;
  /**
   * Uses up a yes for one time, for the run's supervisor, before it does what was allowed. A
   * second time it is refused.
   */
  use(params: ApprovalUseParams, options?: CallOptions): Promise<ApprovalResult>;
  /**
   * Returns a question of a run of the caller's, to root of all. With answered it comes when the
   * question waits no more.
   */
  get(params: ApprovalGetParams, options?: CallOptions): Promise<ApprovalResult>;
  /**
   * Lists the questions of the caller's runs, to root all. If there are more, the answer has next,
   * and the same request with that as after returns the following part.
   */
  list(params?: ApprovalListParams, options?: CallOptions): Promise<ApprovalListResult>;
  /** Yields the approvals of all parts of approval.list, in as many calls as that takes. */
  listAll(params?: ApprovalListParams, options?: CallOptions): AsyncGenerator<Approval, void, void>;
  /**
   * Answers a question of a run of the caller's, or for root of any. The answer names the digest
   * of what was seen, and holds for exactly that. A yes allows no more than the caller may allow
   * by a rule.
   */
  respond(params: ApprovalRespondParams, options?: CallOptions): Promise<ApprovalResult>;
}

/** The methods jobs.*. */
export interface ClovedJobsMethods {
  /** Adds a job to a queue of the caller's, or for root of a user's. */
  add(params: JobsAddParams, options?: CallOptions): Promise<JobResult>;
  /**
   * Lists the jobs of the caller's queues, to root all, with those that are dead and the last ones
   * that are done. If there are more, the answer has next, and the same request with that as after
   * returns the following part.
   */
  list(params?: JobsListParams, options?: CallOptions): Promise<JobsListResult>;
  /** Yields the jobs of all parts of jobs.list, in as many calls as that takes. */
  listAll(params?: JobsListParams, options?: CallOptions): AsyncGenerator<Job, void, void>;
  /** Returns a job of a queue of the caller's. */
  show(params: JobGetParams, options?: CallOptions): Promise<JobResult>;
  /**
   * Makes a dead job ready again, with all its attempts and without its deadline; one that is
   * delayed is ready at once.
   */
  retry(params: JobParams, options?: CallOptions): Promise<JobResult>;
  /**
   * Removes a job that is not done. A run that holds it holds it no more; one that clove has
   * started for it is ended.
   */
  cancel(params: JobParams, options?: CallOptions): Promise<JobResult>;
}

/** The methods queue.*. */
export interface ClovedQueueMethods {
  /**
   * Makes a queue of jobs of the caller's, or for root of a user's. A repetition replaces its
   * settings. With a manifest clove starts a run for each job, which the owner of the queue pays
   * for.
   */
  add(params: QueueAddParams, options?: CallOptions): Promise<QueueResult>;
  /**
   * Lists the queues of the caller's, to root all. If there are more, the answer has next, and the
   * same request with that as after returns the following part.
   */
  list(params?: QueueListParams, options?: CallOptions): Promise<QueueListResult>;
  /** Yields the queues of all parts of queue.list, in as many calls as that takes. */
  listAll(params?: QueueListParams, options?: CallOptions): AsyncGenerator<Queue, void, void>;
  /** Removes a queue in which no job waits, is held or is dead. */
  remove(params: QueueRemoveParams, options?: CallOptions): Promise<void>;
}

/** The methods model.*. */
export interface ClovedModelMethods {
  /**
   * Returns the run's calls of models that wait for their turn: the position of each, and how long
   * it is expected to wait.
   */
  queue(params: RunParams, options?: CallOptions): Promise<ModelQueueResult>;
  /**
   * Lists the language models that the caller may use, with the providers that serve them and
   * their state.
   */
  list(params?: NoParams, options?: CallOptions): Promise<ModelListResult>;
  /**
   * Returns what the tokens of models cost, with date and source. Rows for a provider that the
   * caller may not use are left out.
   */
  prices(params?: NoParams, options?: CallOptions): Promise<ModelPricesResult>;
  /**
   * Makes one small call of a model, as an agent would but from no budget, and says how it went. A
   * call that failed is a result, with failure. It takes two minutes at most.
   */
  test(params: ModelTestParams, options?: CallOptions): Promise<ModelTestResult>;
  /**
   * Returns which runs use models now, and what they used in the last minute; everybody's for
   * root, one's own for others. Runs without cloved are not among them.
   */
  top(params?: NoParams, options?: CallOptions): Promise<ModelTopResult>;
}

/** The methods audit.*. */
export interface ClovedAuditMethods {
  /**
   * Returns records of the audit log about a namespace of the run's owner. An agent needs a grant
   * of kind audit that covers it. If there is more, the answer has next, and the same request with
   * that as after returns the following part, which may be empty.
   */
  read(params: AuditReadParams, options?: CallOptions): Promise<AuditReadResult>;
  /** Yields the records of all parts of audit.read, in as many calls as that takes. */
  readAll(params: AuditReadParams, options?: CallOptions): AsyncGenerator<unknown, void, void>;
  /**
   * Returns records of the audit log, as audit.record notifications: those about the caller's runs
   * and namespaces, to root all. Nothing is verified: root does that with clove audit verify.
   */
  query(params?: AuditQueryParams, options?: CallOptions): Stream<AuditRecordNote, AuditQueryResult>;
  /**
   * Returns from what an event, a call, a message or a run follows, step by step over agents up to
   * what began it, or with down what follows from it: by the audit log, of which the newest GiB is
   * searched. A member sees its own runs and calls.
   */
  trace(params: TraceParams, options?: CallOptions): Promise<TraceResult>;
}

/** The methods blob.*. */
export interface ClovedBlobMethods {
  /**
   * Begins an upload of a blob of the caller's, or for root of a user's: a body of up to 64 MiB,
   * which mail.post and state.write name by its SHA-256. The upload expires after an hour.
   */
  upload(params: BlobUploadParams, options?: CallOptions): Promise<BlobOpenResult>;
  /**
   * Writes a part of an upload, of at most 36 KiB. The parts come in their order; one may be
   * written again.
   */
  part(params: BlobWriteParams, options?: CallOptions): Promise<BlobWriteResult>;
  /**
   * Ends an upload, and returns the SHA-256 of the blob, which is durable then. If no message and
   * no key names it, it is removed after an hour.
   */
  finish(params: BlobCloseParams, options?: CallOptions): Promise<BlobResult>;
  /**
   * Returns the blobs of the caller, for root of all: their sizes, and how many messages, keys and
   * uploads refer to each. If there are more, the answer has next, and the same request with that
   * as after returns the following part.
   */
  list(params?: BlobListParams, options?: CallOptions): Promise<BlobListResult>;
  /** Yields the blobs of all parts of blob.list, in as many calls as that takes. */
  listAll(params?: BlobListParams, options?: CallOptions): AsyncGenerator<KeptBlob, void, void>;
  /** Returns a part of a blob of the caller's, or for root of a user's. */
  fetch(params: BlobFetchParams, options?: CallOptions): Promise<BlobReadResult>;
}

/** The methods state.*. */
export interface ClovedStateMethods {
  /**
   * Lists the keys that agents share in a scope of the caller's, at a path and below it, without
   * their values. If there are more, the answer has next, and the same request with that as after
   * returns the following part.
   */
  query(params?: StateQueryParams, options?: CallOptions): Promise<StateListResult>;
  /** Yields the keys of all parts of state.query, in as many calls as that takes. */
  queryAll(params?: StateQueryParams, options?: CallOptions): AsyncGenerator<StateEntry, void, void>;
  /**
   * Returns a key that agents share, with its value and its version, which is 0 where there is
   * none.
   */
  read(params: StateReadParams, options?: CallOptions): Promise<StateResult>;
  /** Sets a key that agents share, as state.set. */
  write(params: StateWriteParams, options?: CallOptions): Promise<StateSetResult>;
  /** Removes a key that agents share, as state.delete. */
  remove(params: StateRemoveParams, options?: CallOptions): Promise<StateDeleteResult>;
}

/** The methods event.*. */
export interface ClovedEventMethods {
  /**
   * Returns what happened to runs, numbered, as event.happened notifications. Continue from the
   * number of the last one, also after a restart of cloved.
   */
  follow(params?: EventParams, options?: CallOptions): Stream<EventNote, EventResult>;
}

/** Every method, by its noun. */
export interface ClovedMethods {
  readonly daemon: ClovedDaemonMethods;
  readonly run: ClovedRunMethods;
  readonly home: ClovedHomeMethods;
  readonly agent: ClovedAgentMethods;
  readonly manifest: ClovedManifestMethods;
  readonly tool: ClovedToolMethods;
  readonly grant: ClovedGrantMethods;
  readonly budget: ClovedBudgetMethods;
  readonly mail: ClovedMailMethods;
  readonly name: ClovedNameMethods;
  readonly secret: ClovedSecretMethods;
  readonly approval: ClovedApprovalMethods;
  readonly jobs: ClovedJobsMethods;
  readonly queue: ClovedQueueMethods;
  readonly model: ClovedModelMethods;
  readonly audit: ClovedAuditMethods;
  readonly blob: ClovedBlobMethods;
  readonly state: ClovedStateMethods;
  readonly event: ClovedEventMethods;
}

/** The parameters of an agent's notifications. */
export interface NoteParams {
  "budget.warning": BudgetNote;
  "budget.paused": BudgetNote;
  "grant.changed": GrantsNote;
  "agent.offer": OfferNote;
  "agent.accepted": AcceptedNote;
  "agent.lost": LostNote;
}
