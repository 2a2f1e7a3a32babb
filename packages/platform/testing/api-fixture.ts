import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  familyOf,
  loadRegistry,
  OMNIBUS_INDEX,
  pathOf,
  type Asset,
  type Network,
} from '@custody/chains'
import { requestHeaders, signRequest, type SignedRequest } from '@custody/request-auth'
import { openDatabase, type Database } from '../src/core/database/pool.ts'
import { systemEnvironment } from '../src/core/environment.ts'
import { Callers } from '../src/core/http/authentication/callers.ts'
import { endpoints } from '../src/server/app/endpoints.ts'
import { buildServer } from '../src/core/http/server.ts'
import { post } from '../src/core/ledger/post.ts'
import { createMetrics } from '../src/core/metrics.ts'
import { readTiers } from '../src/core/settings/tiers.ts'
import type { Application } from '../src/server/app/application.ts'
import { NodeRefused } from '../src/core/signing/nodes.ts'
import { assertMatchesDocument } from './openapi-assertions.ts'
import { fixtureServices } from './chains/chain-fixture.ts'
import { createTestDatabase, type TestDatabase } from './test-database.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from './harness.ts'
import { InProcessNodes, publicKeyAt } from './in-process-nodes.ts'

/**
 * Fixture with the real HTTP server on a real database, and the rules of two real nodes. Only the
 * chains are scripted.
 */
let created: TestDatabase
export let database: Database
export const registry = loadRegistry('local')
const WORKSPACE = 'acme'
const apiKey = randomUUID()
const HELD = 10n ** 24n
const nodes = new InProcessNodes(2)
export const network = (code: string) => registry.network(code) as Network
export const own = (code: string) =>
  familyOf(network(code)).address(
    network(code),
    publicKeyAt(pathOf(network(code), 1, OMNIBUS_INDEX)),
  )
export const DESTINATIONS: Record<string, string> = {
  ETH: `0x${'ab'.repeat(20)}`,
  USDT_ETH: `0x${'ab'.repeat(20)}`,
  XRP: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
  TRX: 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH',
}
export let services: Application
let port = 0
let close: () => Promise<void>
let workspaceId = ''
export let subAccountId = ''

export const FEE = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n }
/** Scripted chain client with the methods that the API calls when it accepts a request. */
const CLIENT = {
  account: async () => ({
    balance: HELD,
    sequence: 5n,
    reserve: 0n,
    requiresTag: false,
    closed: false,
    wallet: true,
  }),
  activation: async () => 1n,
  isActivated: async () => true,
  probe: async () => undefined,
  status: async () => ({ state: 'pending' }),
  tip: async () => ({ height: 10, hash: 'b10', finalHeight: 5 }),
  block: async (height: number) => ({ height, hash: `b${height}`, parent: `b${height - 1}` }),
  isContract: async () => false,
  feeRates: async () => ({ low: FEE, medium: FEE, high: FEE }),
  parameters: async () => ({
    energySun: 100n,
    bandwidthSun: 1000n,
    createAccountSun: 1_000_000n,
    createAccountFeeSun: 100_000n,
    unfreezeDelayDays: 14,
    maxFeeLimit: 15_000_000_000n,
  }),
  headTime: async () => Date.now(),
  withdrawable: async () => 0n,
}

export async function openApi(): Promise<void> {
  created = await createTestDatabase()
  database = openDatabase(created.url)
  const environment = systemEnvironment()
  const silent = {
    info: () => undefined,
    warn: () => undefined,
    error: (...all: unknown[]) => {
      console.error(...all)
    },
  }
  services = fixtureServices(
    {
      environment,
      database: database,
      log: silent,
      signers: nodes.signers,
      metrics: createMetrics(),
      callers: new Callers(database, environment),
      settings: {
        network: 'local',
        rateLimit: 1_000_000,
        rateScope: 'key',
        trustProxy: 0,
        authLegacy: false,
        prepaidTiers: readTiers('FREE:0:0:0:0'),
      },
      prices: { price: () => null },
      keys: { get: async () => ({ at: publicKeyAt }) },
    },
    {
      ETH: CLIENT,
      XRP: { ...CLIENT, feeRates: async () => ({ low: 12n, medium: 12n, high: 12n }) },
      TRX: CLIENT,
    },
  )
  const one = async (sql: string, values: unknown[]) =>
    (await database.one<{ id: string }>(sql, values))?.id as string
  workspaceId = await one('insert into workspaces (name) values ($1) returning id', [WORKSPACE])
  subAccountId = await one(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1) returning id`,
    [workspaceId],
  )
  await database.query(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem)
      values ($1, $2, 'full', $3)`,
    [apiKey, subAccountId, PUBLIC_KEY],
  )
  for (const asset of Object.keys(DESTINATIONS)) {
    const wallet = await one(
      `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
        returning id`,
      [workspaceId, subAccountId, asset, (registry.asset(asset) as Asset).network],
    )
    await database.transaction((tx) =>
      post(tx, 'deposit', randomUUID(), [
        { workspace: workspaceId, asset, kind: 'chain', amount: -HELD },
        { workspace: workspaceId, wallet, asset, kind: 'available', amount: HELD },
      ]),
    )
  }
  nodes.enrol({
    api_key: apiKey,
    public_key_pem: PUBLIC_KEY,
    role: 'full',
    workspace: WORKSPACE,
    sub_account: 1,
  })
  const server = await buildServer(services, endpoints)
  await server.listen({ port: 0, host: '127.0.0.1' })
  port = (server.server.address() as AddressInfo).port
  close = () => server.close()
}
export async function closeApi(): Promise<void> {
  await close()
  nodes.close()
  await database.close()
  await created.remove()
}

interface Answered {
  status: number
  body: Record<string, unknown>
  request: SignedRequest
}

/** Sends one signed request with exactly this target. `fetch` would normalize the target. */
export async function send(
  method: string,
  uri: string,
  body: string,
  more: Record<string, string> = {},
  key = apiKey,
): Promise<Answered> {
  const request = await signRequest({ apiKey: key, privateKey: PRIVATE_KEY, method, uri, body })
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        host: '127.0.0.1',
        port,
        method,
        path: uri,
        headers: {
          ...requestHeaders(request, key),
          'content-length': String(Buffer.byteLength(body)),
          ...more,
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const [status, text] = [response.statusCode as number, Buffer.concat(chunks).toString()]
          try {
            assertMatchesDocument({
              method,
              path: uri,
              status,
              headers: new Headers(response.headers as Record<string, string>),
              text,
            })
            resolve({ status, body: JSON.parse(text) as Record<string, unknown>, request })
          } catch (error) {
            reject(error as Error)
          }
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/**
 * Asserts that both nodes accept the request if the API accepted it. Returns whether the API
 * accepted it.
 */
export async function judged({ status, body, request }: Answered): Promise<boolean> {
  assert.ok(
    status < 500,
    `${status} ${JSON.stringify(body)} to ${request.uri} ${request.body.slice(0, 300)}`,
  )
  if (status !== 200) return false
  for (const node of [1, 2]) {
    await nodes.call(node, 'POST', '/receipt', { request }).catch((error: unknown) => {
      assert.fail(
        `200, and node ${node} refuses (${error instanceof NodeRefused ? error.code : ''} ${String(error)}): ` +
          `${request.uri} ${request.body.slice(0, 300)}`,
      )
    })
  }
  return true
}

export const transferOf = (
  asset: string,
  more: Record<string, string> = {},
): Record<string, string> => ({
  asset: `"${asset}"`,
  amount: '1',
  destination_address: `"${DESTINATIONS[asset]}"`,
  destination_type: '"EXTERNAL"',
  source_type: '"INTERNAL"',
  ...more,
})
export const jsonOf = (fields: readonly (readonly [string, string])[], space = '') =>
  `{${space}${fields.map(([name, value]) => `"${name}"${space}:${space}${value}`).join(`${space},`)}}${space}`
export const create = (fields: Record<string, string>, uri = '/dac/v1/transaction') =>
  send('POST', uri, jsonOf(Object.entries(fields)))
