import type { ApiRole } from '@custody/request-auth/roles'
import {
  addressAt,
  publicKeysBelow,
  tron,
  type Asset,
  type Network,
  type TronAction,
  type UnsignedTransaction,
} from '@custody/chains'
import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import { createECDH, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signBytes } from '../src/canonical.ts'
import { Refusal } from '../src/errors.ts'
import type { CertifiedKey } from '../src/keys/keyring.ts'
import { receiptBytes } from '../src/policy/age.ts'
import type { Context } from '../src/policy/context.ts'
import { Judge } from '../src/policy/judge.ts'
import { orderSchema, type GovernedVerdict, type Order, type Receipt } from '../src/policy/order.ts'
import { Store } from '../src/store/index.ts'
import {
  callerKey,
  callerPem,
  registry,
  SINK_ETH,
  type Caller,
  type Workspace,
} from './signer-cluster.ts'

/**
 * The judgement of one node alone, with its own record on disk, a fixed clock and the keys of this
 * file. There are no peers, and nothing is signed.
 */
export const IAT = 1_800_000_000
export const WORKSPACE = 'w'
export const TRX = registry.network('TRX') as Network
export const SESSION = { sessions: [], partner: 2, peer_head: null }

const ecdh = createECDH('secp256k1')
ecdh.setPrivateKey(Buffer.alloc(32, 7))
const ed25519 = createPublicKey(
  createPrivateKey({
    key: Buffer.concat([
      Buffer.from('302e020100300506032b657004220420', 'hex'),
      Buffer.alloc(32, 7),
    ]),
    format: 'der',
    type: 'pkcs8',
  }),
)
const certified = (curve: Network['curve'], publicKey: Uint8Array): CertifiedKey => {
  const key = { key_id: `key of ${curve}`, curve, publicKey, chainCode: new Uint8Array(32).fill(3) }
  return { ...key, publicKeyAt: publicKeysBelow(key) }
}
export const KEYS = {
  secp256k1: certified('secp256k1', new Uint8Array(ecdh.getPublicKey(null, 'compressed'))),
  ed25519: certified(
    'ed25519',
    new Uint8Array(ed25519.export({ format: 'der', type: 'spki' }).subarray(-32)),
  ),
}
export const addressOf = (network: Network, path: readonly number[]): string =>
  addressAt(network, KEYS[network.curve], [...path])
/** Workspace for builders that require one. */
export const WALLET = {
  key: KEYS.secp256k1,
  publicKeyAt: KEYS.secp256k1.publicKeyAt,
} as unknown as Workspace

const second = generateKeyPairSync('ed25519')
export const receiptOf = (codeOf: Receipt['receipt']): Receipt => ({
  receipt: codeOf,
  signature: signBytes(second.privateKey, receiptBytes(codeOf)),
})

/** Returns the code and message of a refusal; null: the call was not refused. */
export function said(act: () => unknown): string | null {
  try {
    act()
    return null
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return `${error.code}: ${error.message}`
  }
}

export async function verdictOf(act: () => unknown): Promise<string | null> {
  const thrown = await Promise.resolve()
    .then(act)
    .then(
      () => null,
      (error: unknown) => ({ error }),
    )
  return (
    thrown &&
    said(() => {
      throw thrown.error
    })
  )
}

export interface JudgedRequest {
  request: SignedRequest
  nonce: string
  id: string
  caller: Caller
}
type Body = Record<string, unknown>
/** Returns a key in the format of the record. */
export const names = (...parts: unknown[]): string => JSON.stringify(parts)
/** Returns the key of the intent that a request without a sequence_id creates. */
export const keyOf = ({ caller, nonce }: JudgedRequest, action = 'pay'): string =>
  names(action, 'nonce', caller.api_key, nonce)
export const pay = ({ request }: JudgedRequest, more: object = {}) => ({
  kind: 'pay',
  request,
  ...more,
})
let last = 0
const uuid = (number: number): string =>
  `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

/** Creates a signed request, issued at IAT, with its own nonce. */
export async function ask(
  caller: Caller,
  uri: string,
  body: Body,
  more: Partial<Parameters<typeof signRequest>[0]> = {},
): Promise<JudgedRequest> {
  const nonce = more.nonce ?? uuid(++last)
  const request = await signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri,
    body: JSON.stringify(body),
    now: IAT,
    ...more,
    nonce,
  })
  return { request, nonce, id: transactionId(caller.api_key, nonce), caller }
}
export const asksPay = (
  caller: Caller,
  body: Body = {},
  more: Parameters<typeof ask>[3] = {},
): Promise<JudgedRequest> =>
  ask(
    caller,
    '/dac/v1/transaction',
    {
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
      asset: 'ETH',
      amount: 1,
      destination_address: SINK_ETH,
      ...body,
    },
    more,
  )
export const asksRule = (
  caller: Caller,
  body: Body = {},
  more: Parameters<typeof ask>[3] = {},
): Promise<JudgedRequest> =>
  ask(
    caller,
    '/dac/v1/auto-forwarding',
    {
      asset: 'ETH',
      min_amount: 1,
      destination_address: SINK_ETH,
      daily_cap: 5,
      expires_at: new Date((IAT + 86_400) * 1000).toISOString(),
      ...body,
    },
    more,
  )
export const asksStake = (caller: Caller, uri: string, body: Body): Promise<JudgedRequest> =>
  ask(caller, uri, {
    asset: 'TRX',
    ...(uri.endsWith('release-unstaked') ? {} : { resource: 'ENERGY', amount: 100 }),
    ...body,
  })
export const asksAbout = (
  caller: Caller,
  id: string,
  name: 'speed-up' | 'cancel',
  body: Body = {},
): Promise<JudgedRequest> => ask(caller, `/dac/v1/transaction/${id}/${name}`, body)
export const asksEnd = (caller: Caller, id: string): Promise<JudgedRequest> =>
  ask(caller, `/dac/v1/auto-forwarding/${id}`, {}, { method: 'DELETE' })

const REFERENCE = {
  ...tron.refBlock(70_000_000, '00000000042c1d80a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778'),
  expiration: (IAT + 600) * 1000,
  timestamp: IAT * 1000,
}
const common = (path: number[], reference = {}) => ({
  reference: { ...REFERENCE, ...reference },
  path,
  publicKey: KEYS.secp256k1.publicKeyAt(path),
})
export const trx = (
  path: number[],
  to: string,
  amount: bigint,
  asset = 'TRX',
): UnsignedTransaction =>
  tron.buildTransfer(TRX, {
    ...common(path),
    asset: registry.asset(asset) as Asset,
    to,
    amount,
    ...(asset === 'TRX' ? {} : { feeLimit: 15_636_000n }),
  })
type Staked = Partial<TronAction> & Pick<TronAction, 'kind'>
export const staked = (
  path: number[],
  action: Staked,
  reference: object = {},
): UnsignedTransaction =>
  tron.buildAction(TRX, {
    resource: 'ENERGY',
    amount: 100_000_000n,
    receiver: null,
    ...action,
    ...common(path, reference),
  } as Parameters<typeof tron.buildAction>[1])

export class Bench {
  readonly store: Store
  readonly judge: Judge
  readonly context: Context
  readonly #folder = mkdtempSync(join(tmpdir(), 'judging-'))
  /** Unix time in seconds. */
  now = IAT

  constructor(budgetFeeCaps = 4) {
    this.store = new Store(join(this.#folder, 'record.sqlite'), () => this.now * 1000)
    this.context = {
      registry,
      store: this.store,
      identities: new Map([[2, second.publicKey]]),
      budgetFeeCaps,
      keyOf: (workspace, curve) =>
        workspace === WORKSPACE
          ? Promise.resolve(KEYS[curve])
          : Promise.reject(new Refusal('KEY_NOT_READY', workspace)),
    }
    this.judge = new Judge(this.context)
  }

  caller(
    sub_account: number,
    more: { api_key?: string; workspace?: string; role?: ApiRole } = {},
  ): Caller {
    const api_key = more.api_key ?? uuid(++last)
    const { workspace = WORKSPACE, role = 'full' } = more
    this.store.append('enrol', {
      api_key,
      public_key_pem: callerPem,
      role,
      workspace,
      sub_account,
      sub_account_name: `sub-${sub_account}`,
    })
    return { api_key, sub_account }
  }

  /** Returns the order in the form in which a node reads the platform's call. */
  order(purpose: object, unsigned: UnsignedTransaction, workspace = WORKSPACE): Order {
    return orderSchema.parse({ workspace, purpose, unsigned })
  }
  async verdict(
    purpose: object,
    unsigned: UnsignedTransaction,
    workspace?: string,
  ): Promise<GovernedVerdict> {
    const verdict = await this.judge.judge(this.order(purpose, unsigned, workspace))
    return this.judge.govern([verdict])[0]!
  }
  /**
   * Performs all steps of a node before signing: judges the order and records it. Returns the
   * refusal, or null.
   */
  codeOf(
    purpose: object,
    unsigned: UnsignedTransaction,
    workspace?: string,
  ): Promise<string | null> {
    return verdictOf(async () =>
      this.judge.admit(await this.verdict(purpose, unsigned, workspace), SESSION),
    )
  }

  close(): void {
    this.store.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
