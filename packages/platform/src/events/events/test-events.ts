import type { EventType } from '../../core/database/event-types.ts'

/**
 * Time in milliseconds after its last request within which a listener is taken to be running. It
 * sends several requests a second.
 */
const LISTENING_MS = 3000
/** Number of events that are kept for listeners. */
const KEPT_MAX = 100

/** What a listener wants to receive; null: all. */
export interface ListenerFilter {
  workspace: string | null
  types: readonly EventType[] | null
}

export interface TestEvent {
  id: string
  type: EventType
  /** Workspace to which the event was sent; null: all. */
  workspace: string | null
  object: string
  timestamp: string
  body: string
}

const isFor = (
  { workspace, types }: ListenerFilter,
  event: Pick<TestEvent, 'type' | 'workspace'>,
): boolean =>
  (workspace === null || event.workspace === null || workspace === event.workspace) &&
  (types === null || types.includes(event.type))

/**
 * Test events for the running `custody listen` commands. They are only in memory, because nothing
 * about them happened: a listener that starts later does not receive them.
 */
export class TestEvents {
  #events: TestEvent[] = []
  /** Number of events that are no longer kept. */
  #dropped = 0
  readonly #listeners = new Map<string, { filter: ListenerFilter; atMs: number }>()

  /**
   * Returns the events after a position, and notes that a listener is running.
   * @param position null: no events, but the end
   */
  after(
    position: number | null,
    filter: ListenerFilter,
    nowMs: number,
  ): { position: number; events: TestEvent[] } {
    this.#listeners.set(JSON.stringify(filter), { filter, atMs: nowMs })
    const end = this.#dropped + this.#events.length
    const from = Math.max(0, (position ?? end) - this.#dropped)
    return {
      position: end,
      events: this.#events.slice(from).filter((event) => isFor(filter, event)),
    }
  }

  /** Whether a running listener receives such an event. */
  isHeard(event: Pick<TestEvent, 'type' | 'workspace'>, nowMs: number): boolean {
    for (const [name, { atMs }] of this.#listeners)
      if (atMs < nowMs - LISTENING_MS) this.#listeners.delete(name)
    return [...this.#listeners.values()].some(({ filter }) => isFor(filter, event))
  }

  add(event: TestEvent): void {
    this.#events.push(event)
    if (this.#events.length <= KEPT_MAX) return
    this.#events.shift()
    this.#dropped++
  }
}
