/**
 * What a hostile node does besides following the protocol; each kind can be switched on alone.
 * `silence`: it does not answer. `garbage`: it answers with wrong or malformed data. `refuse`: it
 * refuses, in its own name. `withhold`: it stops after any message, and keeps what it can finish.
 * `split`: it sends rounds one by one that belong together, so that the other side sends its last
 * message first. `variants`: it opens another transaction of an order that it has seen, with an old
 * nonce or an invented input. `sweeps`: it opens sweeps that the platform did not order. `flood`: it
 * opens sessions and ends them, many times. `replay`: it refuses an order as if no node had begun to sign
 * it, and has it signed later. `attribution`: it states that another node refuses. `false-voids`: it
 * confirms voids of payments that it can finish. `policy-position`: it claims to have policies on
 * record that it does not send. `platform`: the platform is hostile too, and orders further
 * transactions of payments at any pair of nodes.
 */
export const ATTACKS = [
  'silence',
  'garbage',
  'refuse',
  'withhold',
  'split',
  'variants',
  'sweeps',
  'flood',
  'replay',
  'attribution',
  'false-voids',
  'policy-position',
  'platform',
] as const
export type Attack = (typeof ATTACKS)[number]
