import type { RequestSender, StreamEvent } from './transport.ts'
import type { EventFilter, EventPage, LogEvent } from './types.ts'
import { query } from './wire.ts'

/** What has happened: the log, and the stream of what comes. */
export class Events {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /** The oldest first; go on with `after: next`. */
  list(filter: EventFilter = {}): Promise<EventPage> {
    return this.#client.request('GET', `/dac/v1/events${query(filter)}`)
  }

  /**
   * Each of the log after `after`, until its end. Keep the `id` of the last one: it is the next
   * `after`.
   */
  async *each(filter: EventFilter = {}): AsyncGenerator<LogEvent> {
    let after = filter.after
    for (;;) {
      const {
        data,
        next,
        has_more: hasMore,
      } = await this.list({ ...filter, ...(after === undefined ? {} : { after }) })
      yield* data
      if (!hasMore || next === null) return
      after = next
    }
  }

  /**
   * Events as they come, each once, in order, over as many connections as it takes.
   * @param options.after the last one that was seen: what came since comes first
   * @throws CustodyError `CURSOR_EXPIRED` where the log does not go back that far
   */
  async *stream(
    options: { after?: string; type?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<LogEvent> {
    const { after, type, signal } = options
    const path = `/dac/v1/events/stream${query({ after, type })}`
    const events: AsyncGenerator<StreamEvent<LogEvent>> = this.#client.stream(
      path,
      signal ? { signal } : {},
    )
    for await (const { data } of events) yield data
  }
}
