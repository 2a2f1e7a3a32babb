// Calls each method of each client with responses in its protocol's format, with unusual ones, and
// with responses in which one field was changed. A client returns a value of the promised form, or
// throws a ChainError that states what is wrong. It never throws another error and never returns a
// malformed value.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  CardanoClient,
  ChainError,
  EvmClient,
  SolanaClient,
  StellarClient,
  TronClient,
  UtxoClient,
  XrpClient,
  type Asset,
  type Fetch,
  type Network,
} from '../../src/index.ts'
import { ADA } from '../cardano-support.ts'
import { local } from '../support.ts'

const FOLDER = import.meta.dirname
const BASE_URL = 'http://node.test'
/**
 * Written by hand from the documentation of the protocols. `answers` by method or path; an object
 * with a key `*` contains responses by parameters.
 */
interface Recording {
  about: string
  network: string
  calls: [string, ...unknown[]][]
  answers: Record<string, unknown>
}
type Client = Record<string, (...args: unknown[]) => Promise<unknown>>
interface Family {
  make(network: Network, assets: readonly Asset[], fetch: Fetch): object
  prototype: object
  transport: 'rpc' | 'path'
}

const now = () => 1_700_000_000_000
const FAMILIES: Record<string, Family> = {
  utxo: {
    make: (network, _assets, fetch) => new UtxoClient(network, { url: BASE_URL }, fetch, now),
    prototype: UtxoClient.prototype,
    transport: 'rpc',
  },
  evm: {
    make: (network, assets, fetch) => new EvmClient(network, assets, { url: BASE_URL }, fetch),
    prototype: EvmClient.prototype,
    transport: 'rpc',
  },
  xrp: {
    make: (network, _assets, fetch) => new XrpClient(network, { url: BASE_URL }, fetch, now),
    prototype: XrpClient.prototype,
    transport: 'rpc',
  },
  stellar: {
    make: (network, _assets, fetch) => new StellarClient(network, { url: BASE_URL }, fetch, now),
    prototype: StellarClient.prototype,
    transport: 'rpc',
  },
  tron: {
    make: (network, assets, fetch) =>
      new TronClient(network, assets, { url: BASE_URL }, fetch, () => 0),
    prototype: TronClient.prototype,
    transport: 'path',
  },
  solana: {
    make: (network, assets, fetch) =>
      new SolanaClient(network, assets, { url: BASE_URL }, fetch, now),
    prototype: SolanaClient.prototype,
    transport: 'rpc',
  },
  cardano: {
    make: (network, _assets, fetch) => new CardanoClient(network, { url: BASE_URL }, fetch, now),
    prototype: CardanoClient.prototype,
    transport: 'path',
  },
}

/** Numbers that a double cannot represent are written in the file as `{"$number": "…"}`. */
const RAW = /\{"\$number":"([^"]+)"\}/g
const toJson = (value: unknown): string => (JSON.stringify(value) ?? 'null').replace(RAW, '$1')

function answering(
  family: Family,
  answers: Record<string, unknown>,
  used: Set<string> = new Set(),
): Fetch {
  return async (url, init) => {
    const question =
      family.transport === 'rpc'
        ? (JSON.parse(String(init.body)) as { method: string; params: unknown })
        : null
    const name =
      question?.method ??
      url
        .slice(BASE_URL.length)
        .split('?')[0]!
        .replace(/^\/(wallet)/, '$1')
    const parameters = question
      ? JSON.stringify(question.params)
      : typeof init.body === 'string'
        ? init.body
        : ''
    used.add(name)
    const reply = answers[name]
    const byParameters =
      typeof reply === 'object' &&
      reply !== null &&
      Object.keys(reply).some((key) => key === '*' || key.startsWith('[') || key.startsWith('{'))
    const answer = byParameters
      ? ((reply as Record<string, unknown>)[parameters] ?? (reply as Record<string, unknown>)['*'])
      : reply
    const isMissing = !(name in answers) || (byParameters && answer === undefined)
    if (question)
      return new Response(
        isMissing
          ? '{"error":{"code":-5,"message":"no such thing"}}'
          : `{"result":${toJson(answer)}}`,
      )
    if (isMissing)
      return Response.json(
        { status_code: 404, error: 'Not Found', message: 'no such thing' },
        { status: 404 },
      )
    return new Response(toJson(answer))
  }
}

/** Returns an argument of a call: `asset:NAME` is an asset of the registry, `amount:N` a bigint. */
function argumentOf(value: unknown): unknown {
  if (typeof value === 'string' && value.startsWith('asset:')) {
    const name = value.slice('asset:'.length)
    return local.asset(name) ?? assert.fail(`no asset ${name}`)
  }
  if (typeof value === 'string' && value.startsWith('amount:'))
    return BigInt(value.slice('amount:'.length))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, argumentOf(each)]))
}

/**
 * Returns where a result contains a value that no method may return: an undefined field, NaN, or a
 * negative amount.
 */
function nonsense(value: unknown, path = 'answer'): string | null {
  if (value === undefined) return path === 'answer' ? null : `${path} is undefined`
  if (typeof value === 'bigint') return value < 0n ? `${path} is ${value}` : null
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${path} is ${value}`
  if (typeof value !== 'object' || value === null) return null
  for (const [key, each] of Object.entries(value)) {
    const problem = nonsense(each, `${path}.${key}`)
    if (problem !== null) return problem
  }
  return null
}

async function outcomeOf(
  family: Family,
  { network: code, answers }: Recording,
  [method, ...args]: Recording['calls'][number],
  used?: Set<string>,
): Promise<{ value: unknown } | { error: ChainError }> {
  const network = code === 'ADA' ? ADA : (local.network(code) ?? assert.fail(`no network ${code}`))
  const client = family.make(
    network,
    local.assetsOf(code),
    answering(family, answers, used),
  ) as Client
  let value: unknown
  try {
    value = await client[method]!(...args.map(argumentOf))
  } catch (error) {
    assert.ok(
      error instanceof ChainError,
      `${method}: ${error instanceof Error ? error.stack : String(error)}`,
    )
    assert.ok(
      ['RPC_UNAVAILABLE', 'RPC_REFUSED', 'WRONG_NETWORK'].includes(error.code),
      `${method}: ${error.stack}`,
    )
    return { error }
  }
  const problem = nonsense(value)
  assert.equal(problem, null, `${method}: ${problem}`)
  return { value }
}

const recordingsOf = (name: string): [string, Recording][] =>
  readdirSync(join(FOLDER, name))
    .toSorted()
    .map((file) => [file, JSON.parse(readFileSync(join(FOLDER, name, file), 'utf8')) as Recording])

/** Yields the path of every value within a value, beginning with the value itself. */
function* placesIn(value: unknown, path: string[] = []): Generator<string[]> {
  yield path
  if (typeof value === 'object' && value !== null)
    for (const [key, each] of Object.entries(value)) yield* placesIn(each, [...path, key])
}

/** Returns a copy with another value at a path; undefined removes the field. */
function changedAt(value: unknown, [key, ...rest]: string[], to: unknown): unknown {
  if (key === undefined) return to
  if (Array.isArray(value))
    return value.flatMap((each, at) =>
      String(at) !== key
        ? [each]
        : rest.length === 0 && to === undefined
          ? []
          : [changedAt(each, rest, to)],
    )
  return {
    ...(value as object),
    [key]: changedAt((value as Record<string, unknown>)[key], rest, to),
  }
}

const ODD: unknown[] = [
  undefined,
  null,
  '',
  'odd',
  '0x',
  '-1',
  true,
  -1,
  1.5,
  { $number: '9007199254740993' },
  { $number: '123456789012345678901234567890' },
  { $number: '1e400' },
  [],
  [null],
  {},
  '9'.repeat(90),
]

for (const [name, family] of Object.entries(FAMILIES)) {
  const recordings = recordingsOf(name)

  test(`${name}: each method accepts responses in the format of its protocol`, async () => {
    const base =
      recordings.find(([file]) => file === 'base.json')?.[1] ?? assert.fail('no base.json')
    const methods = Object.getOwnPropertyNames(family.prototype).filter(
      (each) => each !== 'constructor',
    )
    assert.deepEqual(
      methods.filter((each) => !base.calls.some(([method]) => method === each)),
      [],
      'methods without a call in base.json',
    )
    for (const call of base.calls) {
      const outcome = await outcomeOf(family, base, call)
      assert.ok(
        'value' in outcome,
        `${call[0]}: ${'error' in outcome ? outcome.error.message : ''}`,
      )
    }
  })

  test(`${name}: each method accepts unusual but valid responses`, async () => {
    for (const [file, recording] of recordings.filter(([each]) => each !== 'base.json')) {
      for (const call of recording.calls) {
        const outcome = await outcomeOf(family, recording, call)
        assert.ok(
          'value' in outcome,
          `${file} ${call[0]}: ${'error' in outcome ? outcome.error.message : ''}`,
        )
      }
    }
  })

  test(`${name}: if any field is missing or changed, a method returns its type or an error`, async () => {
    let runs = 0
    const failures: string[] = []
    for (const [, recording] of recordings) {
      const uses = await Promise.all(
        recording.calls.map(async (call) => {
          const used = new Set<string>()
          await outcomeOf(family, recording, call, used)
          return { call, used }
        }),
      )
      for (const [method, answer] of Object.entries(recording.answers)) {
        for (const place of placesIn(answer)) {
          for (const odd of ODD) {
            const changed = {
              ...recording,
              answers: { ...recording.answers, [method]: changedAt(answer, place, odd) },
            }
            for (const { call, used } of uses) {
              if (!used.has(method)) continue
              runs++
              try {
                await outcomeOf(family, changed, call)
              } catch (error) {
                const what = `${method}${place.map((each) => `.${each}`).join('')} = ${toJson(odd)}: ${(error as Error).message}`
                failures.push(what.slice(0, 400))
              }
            }
          }
        }
      }
    }
    assert.deepEqual(failures.slice(0, 20), [], `${failures.length} of ${runs} runs`)
    assert.ok(runs > 100, `${runs} runs`)
  })
}
