import { loadRegistry } from '@custody/chains'
import { documentHash, factsOf, type PolicyDocument, type PolicyRegistry } from '@custody/policy'
import { signRequest } from '@custody/request-auth'
import { transactionId } from '@custody/request-auth/web'
import { createHash, type KeyObject } from 'node:crypto'
import type { DetailedApproval } from '../src/approvals/parts.ts'

/** A transfer of 0.6 ETH that waits for approvals, and what differs from it. */
export interface FixtureOptions {
  document: PolicyDocument
  registry: PolicyRegistry
  apiKey: string
  /** RSA key of the caller. */
  privateKey: KeyObject
  /** Unix seconds of the present. The request is ten seconds old. */
  now_s: number
  payee: string
  nonce?: string
  /** Fields of the body of the request. */
  body?: object
  action?: 'transfer' | 'refund'
  uri?: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * Returns a transfer of the sub-account `main` with index 1, as the platform returns it, with a
 * request that was really signed. `subject` is computed as packages/signer/src/intent/pay.ts does.
 */
export async function approvalWith(options: FixtureOptions): Promise<DetailedApproval> {
  const { document, registry, apiKey, now_s, payee, nonce = 'nonce-1' } = options
  const { action = 'transfer', uri = '/dac/v1/transaction' } = options
  const fields = {
    asset: 'ETH',
    amount: '0.6',
    source_type: 'INTERNAL',
    destination_type: 'EXTERNAL',
    destination_address: payee,
    ...options.body,
  }
  const request = await signRequest({
    apiKey,
    privateKey: options.privateKey,
    method: 'POST',
    uri,
    body: JSON.stringify(fields),
    now: now_s - 10,
    nonce,
  })
  const id = transactionId(apiKey, nonce)
  const feeCap = loadRegistry(document.mode).network('ETH')?.fee_cap ?? ''
  const units = BigInt(Math.round(Number(fields.amount) * 1e6)) * 10n ** 12n
  const key = JSON.stringify(['pay', 'nonce', apiKey, nonce])
  const subject = sha256(
    JSON.stringify([
      key,
      {
        workspace: 'acme',
        sub_account: 1,
        asset: 'ETH',
        amount: units.toString(),
        destination: payee,
        tag: null,
        fee_rate: null,
        fee_level: null,
      },
    ]),
  )
  const facts = factsOf(
    {
      sub_account: 'main',
      asset: 'ETH',
      network: 'ETH',
      amount: units,
      to: { address: payee, tag: null, own: null },
      fee: { max: 1n, limit: BigInt(feeCap) },
      standing: null,
      resource: null,
    } as never,
    registry,
  )
  const { mode, workspace, nodes, number } = document
  return {
    id,
    state: 'open',
    action,
    facts,
    needs: [{ group: 'treasury', k: 2, have: 0 }],
    have: [],
    expires_at: new Date((now_s + 500_000) * 1000).toISOString(),
    statement: {
      v: 1,
      mode,
      workspace,
      nodes,
      policy: { number, hash: documentHash(document) },
      id,
      subject,
      action,
      facts,
    },
    request,
  }
}
