import type { Forwards } from '../engine/services.ts'
import { noteIncoming, takeBackIncoming } from './incoming.ts'
import { forwardDone, returnForward } from './outcome.ts'

/** What standing rules are told of money that comes and goes. */
export const forwards: Forwards = {
  credited: noteIncoming,
  takenBack: takeBackIncoming,
  done: forwardDone,
  returned: returnForward,
}
