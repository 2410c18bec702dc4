/**
 * What can go wrong between a frontend and the service.
 *
 *     ConvokeError
 *     ├── ProblemError     the service answered, and said no: which field, what was expected and found
 *     ├── NetworkError     no answer: offline, refused, cut off
 *     │   └── GatewayError a server on the way says that it has no answer of the service
 *     ├── AbortedError     the caller's own signal ended the call
 *     └── ProtocolError    an answer that does not follow the contract
 *         └── ForeignError an answer of something else than the service
 */

export interface Issue {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly expected?: unknown;
  readonly got?: unknown;
}

export class ConvokeError extends Error {
  override name: string = "ConvokeError";
}

export class NetworkError extends ConvokeError {
  override name = "NetworkError";
}

export class GatewayError extends NetworkError {
  override name = "GatewayError";

  constructor(readonly status: number, readonly title: string, readonly retryAfter: number | null) {
    super(`a server on the way to it says ${[status, title].filter(Boolean).join(" ")}`);
  }
}

export class AbortedError extends ConvokeError {
  override name = "AbortedError";
}

export class ProtocolError extends ConvokeError {
  override name = "ProtocolError";
}

export class ForeignError extends ProtocolError {
  override name = "ForeignError";
}

export interface Problem {
  readonly type?: string;
  readonly title?: string;
  readonly status?: number;
  readonly detail?: string;
  readonly request_id?: string;
  readonly errors?: readonly Issue[];
}

export class ProblemError extends ConvokeError {
  override name = "ProblemError";
  readonly issues: readonly Issue[];

  constructor(
    readonly status: number,
    readonly problem: Problem,
    /** Seconds after which the service asks to be tried again. */
    readonly retryAfter: number | null,
  ) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.issues = Array.isArray(problem.errors) ? problem.errors : [];
  }

  /** The service was busy or ending, and the same request may well succeed later. */
  get temporary(): boolean {
    return [429, 502, 503, 504].includes(this.status);
  }

  /**
   * A key is missing, or it is none of the service's: another one may help, and time does not. A 403 may be somebody
   * else's on the way, who asks for no key.
   */
  get locked(): boolean {
    return this.status === 401 || this.problem.type?.endsWith("/problems/forbidden") === true;
  }
}
