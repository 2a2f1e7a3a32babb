import type { Authority } from '../context.ts'
import type { Purpose } from '../order.ts'
import { cancel } from './cancel.ts'
import { consolidate } from './consolidate.ts'
import { drain } from './drain.ts'
import { forward } from './forward.ts'
import { fuel } from './fuel.ts'
import { lend } from './lend.ts'
import { pay } from './pay.ts'
import { recover } from './recover.ts'
import { stake } from './stake.ts'
import { sweep } from './sweep.ts'
import { tankStake } from './tank-stake.ts'

const AUTHORITIES: { [K in Purpose['kind']]: Authority<Extract<Purpose, { kind: K }>> } = {
  pay,
  cancel,
  forward,
  stake,
  fuel,
  lend,
  sweep,
  drain,
  'tank-stake': tankStake,
  recover,
  consolidate,
}

/** Returns the authority for a purpose. This is the only list of all purposes. */
export const authorityOf = <P extends Purpose>({ kind }: P): Authority<P> =>
  AUTHORITIES[kind as P['kind']] as unknown as Authority<P>
