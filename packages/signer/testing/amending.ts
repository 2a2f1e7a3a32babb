import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  callerKey,
  ETH,
  SINK_ETH,
  transfer,
  type Caller,
  type SignerCluster,
  type Workspace,
} from './signer-cluster.ts'

/** A payment, and the later requests of its caller: to pay a higher fee, or to cancel it. */
export interface Payment {
  mine: Caller
  path: number[]
  id: string
  request: SignedRequest
}

/** Creates a payment of a new sub-account, which has its own address and nonces. */
export async function payment(
  workspace: Workspace,
  sub: number,
  more: Record<string, unknown> = {},
): Promise<Payment> {
  const mine = await workspace.caller(sub)
  const nonce = randomUUID()
  const request = await transfer(
    mine,
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH, ...more },
    { nonce },
  )
  return { mine, path: [sub, ETH.chain_index, 0], id: transactionId(mine.api_key, nonce), request }
}
export function ask(
  caller: Caller,
  id: string,
  name: 'speed-up' | 'cancel',
  body: Record<string, unknown> = {},
): Promise<SignedRequest> {
  return signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri: `/dac/v1/transaction/${id}/${name}`,
    body: JSON.stringify(body),
  })
}
export const faster = (request: SignedRequest, speedUp: SignedRequest) => ({
  kind: 'pay',
  request,
  speed_up: { request: speedUp },
})
export const cancel = (request: SignedRequest, by: SignedRequest) => ({
  kind: 'cancel',
  of: { kind: 'pay', request },
  request: by,
})

/** Voids the request at every node, whether or not a transaction of it was signed. */
export async function voided(cluster: SignerCluster, request: SignedRequest): Promise<void> {
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/void', { request, force: true })).body.voided, true)
}
