import { checkDocument, documentHash, type PolicyDocument } from '@custody/policy'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Trust } from '@custody/client'
import type { DetailedApproval, GivenDecision } from '@custody/client/approvals/parts'
import { approvalWith, type FixtureOptions } from '../../client/testing/approval-fixture.ts'
import { documentWith, newKey } from '../../policy/testing/documents.ts'
import { newPasskey, type TestPasskey } from '../../policy/testing/passkeys.ts'
import type { Config } from '../src/config.ts'
import { handlerOf } from '../src/server/handler.ts'
import type { Platform } from '../src/server/platform.ts'
import type { DetailedChange } from '../src/verify/change.ts'
import { Documents } from '../src/verify/documents.ts'
import { placeOf } from '../src/verify/place.ts'

export const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
export const NOW_S = 1_900_000_000
export const PAYEE = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
export const PRIVATE_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

const identities = [1, 2, 3].map(() => generateKeyPairSync('ed25519'))

export const trust: Trust = {
  version: 1,
  network: 'mainnet',
  workspace: 'acme',
  sub_account: 'main',
  sub_account_index: 1,
  nodes: identities.map(({ publicKey }, at) => ({
    node: at + 1,
    identity: publicKey.export({ type: 'spki', format: 'pem' }) as string,
  })),
}
export const place = placeOf(trust, 'https://custody.example')

export const alice: TestPasskey = newPasskey('a1')
const BOB = newKey('b1').key
const CAROL = newKey('c1').key

/** Returns a document in which alice has a passkey and bob a key. */
export function documentOf(
  key: object = alice.key,
  fields: Parameters<typeof documentWith>[1] = {},
): PolicyDocument {
  const people = [
    { id: 'alice', name: 'Alice', api_keys: [], keys: [key] },
    { id: 'bob', name: 'Bob', api_keys: [], keys: [BOB] },
    { id: 'carol', name: 'Carol', api_keys: [], keys: [CAROL] },
  ]
  return checkDocument(
    documentWith(
      [
        {
          id: 'large',
          effect: 'allow',
          match: { action: ['transfer'], assets: ['ETH'], to: 'any' },
          amount: { max: { ETH: '10' } },
          approvals: [{ group: 'treasury', k: 2 }],
        },
      ],
      {
        nodes: place.nodes,
        people,
        groups: { admins: ['alice', 'bob', 'carol'], treasury: ['alice', 'bob', 'carol'] },
        ...fields,
      },
    ),
  )
}

/** Returns a transfer of 0.6 ETH as the platform returns it, or a refund of the same amount. */
export const approvalOf = (
  document: PolicyDocument,
  fields: Partial<FixtureOptions> = {},
): Promise<DetailedApproval> =>
  approvalWith({
    document,
    registry: place.registry,
    apiKey: API_KEY,
    privateKey,
    now_s: NOW_S,
    payee: PAYEE,
    ...fields,
  })

/** Returns a signer node's statement that a document is in force, as the platform returns it. */
export function statedBy(
  node: number,
  document: PolicyDocument,
  at = NOW_S,
  stops?: readonly string[],
): object {
  const { mode, nodes, workspace, number } = document
  const word = { node, mode, nodes, workspace, number, hash: documentHash(document), at }
  const { privateKey: own } = identities[node - 1] as (typeof identities)[number]
  const signed = (tag: string, fields: object) =>
    sign(null, Buffer.from(`custody/${tag}/v1\n${JSON.stringify(fields)}`), own).toString('hex')
  return {
    ...word,
    signature: signed('policy-in-force', word),
    ...(stops && { stops, stops_signature: signed('policy-stops', { ...word, stops }) }),
  }
}

/** A platform with one transfer that waits for approvals. */
export class TestPlatform implements Platform {
  approval: DetailedApproval
  inForce: unknown = null
  readonly given: GivenDecision[] = []
  /** Nothing waits. */
  hasNone = false
  /** Error of the next call. */
  failure: Error | null = null

  constructor(approval: DetailedApproval) {
    this.approval = approval
  }

  #fail(): void {
    const { failure } = this
    this.failure = null
    if (failure !== null) throw failure
  }

  async list() {
    this.#fail()
    return { data: this.hasNone ? [] : [this.approval], next: null }
  }

  async read() {
    this.#fail()
    return this.approval
  }

  async give(_id: string, decision: GivenDecision) {
    this.#fail()
    this.given.push(decision)
    const state = decision.decision === 'reject' ? 'rejected' : 'open'
    const needs = [{ group: 'treasury', k: 2, have: decision.decision === 'reject' ? 0 : 1 }]
    this.approval = { ...this.approval, state, needs, have: [...this.approval.have, decision] }
    return { state, needs }
  }

  /** The policy change, if there is one. */
  proposed: DetailedChange | null = null
  readonly proved: object[] = []

  async change() {
    this.#fail()
    if (this.proposed === null) throw new Error('there is no change')
    return this.proposed
  }

  async prove(_id: string, possession: object) {
    this.#fail()
    this.proved.push(possession)
    return { state: 'open', needs: [] }
  }

  /** Pending changes, and the signed texts of stops by their hashes. */
  pending: { document: unknown; acts_at: string }[] = []
  /** Statements of signer nodes about the document in force. */
  statements: object[] = []
  readonly stops = new Map<string, string | null>()
  /** Statements of emergencies that the platform got. */
  readonly sent: object[] = []

  async policy() {
    this.#fail()
    const stops = [...this.stops.keys()].map((hash) => ({ hash }))
    return { document: this.inForce, pending: this.pending, stops, statements: this.statements }
  }

  async stopText(hash: string) {
    return this.stops.get(hash) ?? null
  }

  async stop(statement: object) {
    this.sent.push(statement)
    return { stopped: [1, 2, 3] }
  }

  async veto(statement: object) {
    this.sent.push(statement)
    return { vetoed: [1, 2, 3] }
  }

  async resume(statement: object) {
    this.sent.push(statement)
    return { state: 'stopped', needs: [{ group: 'admins', k: 2, have: 1 }] }
  }

  async document() {
    return this.inForce
  }
}

/** A page that listens on a free port of this machine. */
export interface TestPage {
  origin: string
  config: Config
  dir: string
  close(): void
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** Starts the page in this process. */
export async function startPage(
  platform: Platform,
  o: { now?: () => number; origin?: string; port?: number; onNavigation?: () => void } = {},
): Promise<TestPage> {
  let handler = (_request: IncomingMessage, response: { end(): void }): void => {
    response.end()
  }
  const server = createServer((request, response) => handler(request, response))
  await new Promise<void>((done) => {
    server.listen(o.port ?? 0, '127.0.0.1', done)
  })
  const origin = o.origin ?? `http://localhost:${portOf(server)}`
  const dir = mkdtempSync(join(tmpdir(), 'custody-approver-'))
  const config: Config = {
    version: 1,
    person: 'alice',
    platform: 'http://platform.example',
    api_key: API_KEY,
    private_key_file: '',
    trust_file: '',
    document_file: null,
    origin,
    host: null,
    port: portOf(server),
  }
  const now = o.now ?? Date.now
  const documents = new Documents(dir, null)
  const services = { config, place, trust, documents, platform, now }
  const { onNavigation } = o
  handler = handlerOf(services, onNavigation ? { onNavigation } : {}) as typeof handler
  return {
    origin,
    config,
    dir,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
