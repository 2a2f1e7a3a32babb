import type { ChainClient } from '@custody/chains'

/** Asks one endpoint. `name`: as in logs. */
export type AskEndpoint<Answer> = (client: ChainClient, name: string) => Promise<Answer>

/** The response of one endpoint. */
export interface Vote<Answer> {
  name: string
  answer: Answer
}

/** The endpoints of a network, asked one by one. */
export interface Voters {
  /**
   * Yields the response of each endpoint that responds, in order of preference.
   * @throws RpcUnavailable if fewer endpoints than the quorum respond
   */
  votes<Answer>(ask: AskEndpoint<Answer>): AsyncGenerator<Vote<Answer>>
  /**
   * Stops using an endpoint for a while because its response differs from those of the others.
   * @param client a client returned by `oneEndpoint`
   */
  distrust(client: ChainClient, reason: string): void
  /** Returns the name of the endpoint behind a client of `oneEndpoint`; null before its first answer. */
  nameOf(client: ChainClient): string | null
}

/**
 * Quorum of endpoints: exists if the operator requires several endpoints to agree before money
 * depends on a response.
 */
export interface Agreement extends Voters {
  /** Number of endpoints that must agree, at least two. */
  readonly quorum: number
  /**
   * Returns false if it was called with the same name a few seconds ago, so that a missing
   * agreement is not queried again with every block.
   * @param slower doubles the interval with each query, for queries that could otherwise repeat
   *   without end because one endpoint reports something that does not exist
   */
  isDue(name: string, slower?: boolean): boolean
}
