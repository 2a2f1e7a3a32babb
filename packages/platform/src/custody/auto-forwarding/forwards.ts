import type { Forwards } from '../../core/engine/interfaces/listeners.ts'
import { noteIncoming, takeBackIncoming } from './incoming.ts'
import { forwardDone, returnForward, takeForwardAgain } from './outcome.ts'

/** Handlers of standing rules for credited, reverted and forwarded amounts. */
export const forwards: Forwards = {
  credited: noteIncoming,
  takenBack: takeBackIncoming,
  done: forwardDone,
  returned: returnForward,
  undone: takeForwardAgain,
}
