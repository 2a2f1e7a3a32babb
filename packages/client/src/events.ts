import type { RequestSender, StreamEvent } from './transport.ts'
import type { EventFilter, EventPage, LogEvent } from './types.ts'
import { query } from './wire.ts'

/** The log of events, and a stream of new ones. */
export class Events {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /**
   * Lists events, oldest first. Pass the result's `next` as `after` to continue.
   * @param filter.after id of the last event that you have processed
   */
  list(filter: EventFilter = {}): Promise<EventPage> {
    return this.#client.request('GET', `/dac/v1/events${query(filter)}`)
  }

  /**
   * Iterates over the events after `after` until the end of the log. Store the `id` of the last
   * one: it is the next `after`.
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
   * Streams new events, each once and in order. Reconnects automatically.
   * @param options.after id of the last event that you have processed; later events are sent first
   * @param options.type only events of this type
   * @param options.signal ends the stream
   * @throws CustodyError `CURSOR_EXPIRED` if the log does not go back that far
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
