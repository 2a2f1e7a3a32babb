import { setTimeout as sleep } from 'node:timers/promises'
import {
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../harness.ts'
import { document } from '../openapi-assertions.ts'
import { mutateJson, mutateText, oddText, oddValue, type SeededRandom } from './seeded-random.ts'
import { Found } from './run.ts'

type Schema = Record<string, unknown>
interface Parameter {
  $ref?: string
  name: string
  in: string
  schema: Schema
  example?: unknown
  required?: boolean
}
interface Operation {
  operationId: string
  parameters?: Parameter[]
  security?: unknown[]
  requestBody?: {
    content: Record<
      string,
      { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
    >
  }
}
interface Corpus {
  method: string
  path: string
  operation: Operation
}

const ANSWER_MS_MAX = 30_000
const ODD_JSON = [
  '1e400',
  '-0',
  '00',
  '0x1',
  'NaN',
  '[',
  '{"a":1,"a":2}',
  '{"__proto__":1}',
  '\ufeff{}',
  '{"amount":1e999999}',
  '['.repeat(2000) + ']'.repeat(2000),
  `{"asset":"${'x'.repeat(60_000)}"}`,
  '"\\ud800"',
  '{}{}',
  'null',
  '',
]
const spec = document as unknown as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; parameters?: Record<string, Parameter> }
}

function resolved(schema: Schema | undefined): Schema {
  const name =
    typeof schema?.['$ref'] === 'string' ? (schema['$ref'].split('/').at(-1) as string) : null
  return name === null ? (schema ?? {}) : resolved(spec.components.schemas[name])
}

/** Returns a random value that should match a schema. */
function meant(
  random: SeededRandom,
  input: Schema | undefined,
  words: readonly string[],
  depth = 0,
): unknown {
  const schema = resolved(input)
  if (schema['const'] !== undefined) return schema['const']
  if (Array.isArray(schema['enum'])) return random.of(schema['enum'])
  if (schema['example'] !== undefined && random.in100(50)) return schema['example']
  for (const name of ['anyOf', 'oneOf'])
    if (Array.isArray(schema[name]))
      return meant(random, random.of(schema[name] as Schema[]), words, depth + 1)
  if (Array.isArray(schema['allOf']))
    return Object.assign(
      {},
      ...(schema['allOf'] as Schema[]).map((each) => meant(random, each, words, depth + 1)),
    )
  const type = Array.isArray(schema['type'])
    ? random.of(schema['type'] as string[])
    : schema['type']
  switch (type) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Record<string, Schema>
      const required = (schema['required'] ?? []) as string[]
      return Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => required.includes(name) || (depth < 4 && random.in100(50)))
          .map(([name, inner]) => [name, meant(random, inner, words, depth + 1)]),
      )
    }
    case 'array':
      return Array.from({ length: random.below(4) }, () =>
        meant(random, schema['items'] as Schema, words, depth + 1),
      )
    case 'integer':
      return Math.max(Number(schema['minimum'] ?? 0), random.of([0, 1, 2, 10, 1_800_000_000]))
    case 'number':
      return random.of([0, 1, 0.5, 25, 1e-8])
    case 'boolean':
      return random.in100(50)
    case 'null':
      return null
    default:
      return schema['format'] === 'date-time'
        ? new Date(Date.now() + 86_400_000).toISOString()
        : random.of(words)
  }
}

/** The API of a platform in this process, with requests generated from the OpenAPI document. */
export class Api {
  readonly #platform = new TestPlatform()
  readonly #operations: Corpus[] = Object.entries(spec.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([method]) => ['get', 'post', 'put', 'patch', 'delete'].includes(method))
        .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    )
    // Streams are excluded because they do not end.
    .filter(({ operation }) => !JSON.stringify(operation).includes('text/event-stream'))
  user!: User
  #reader!: User
  /** Valid assets, addresses and ids. */
  #words: string[] = []

  /** A folder of the platform in which a tool may store its files. */
  get home(): string {
    return this.#platform.home
  }

  get count(): number {
    return this.#operations.length
  }

  async open(): Promise<void> {
    await this.#platform.start({ CUSTODY_RATE_LIMIT: '10000000' })
    this.user = await this.#platform.user('fuzz', { rateLimit: 10_000_000 })
    this.#reader = await this.#platform.user('fuzz', { role: 'read-only', rateLimit: 10_000_000 })
    const to = '0x00000000000000000000000000000000000000ee'
    const addresses: string[] = []
    for (const [asset, amount] of [
      ['ETH', '500'],
      ['BTC', '50'],
      ['XRP', '5000'],
      ['TRX', '5000'],
    ] as const)
      addresses.push(await fundedWallet(this.#platform, this.user, asset, amount))
    const { body } = await call<Transfer>(
      this.user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ETH', '1', to, { sequence_id: 'one' }),
    )
    await terminal(this.user, body.id)
    const invoice = (
      await call<{ inv_id: string }>(this.user, 'POST', '/dac/v1/invoices', {
        fiat: 'USD',
        fiat_amount: 25,
        assets: ['ETH', 'BTC'],
      })
    ).body
    const rule = (
      await call<{ id: string }>(this.user, 'POST', '/dac/v1/auto-forwarding', {
        asset: 'BTC',
        min_amount: 1,
        destination_address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
        daily_cap: 10,
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      })
    ).body
    const hook = (
      await call<{ id: string }>(this.user, 'POST', '/dac/v1/webhooks', {
        url: 'https://example.com/',
        events: ['*'],
      })
    ).body
    this.#words = [
      'ETH',
      'BTC',
      'XRP',
      'TRX',
      'USDT_ETH',
      'SOL',
      'USD',
      'EUR',
      '1',
      '0.001',
      '0.5',
      'low',
      'high',
      'one',
      'kraken',
      'BTC/USD',
      'ENERGY',
      'main',
      to,
      ...addresses,
      'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
      'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
      'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
      ...[body.id, body.hash, invoice.inv_id, rule.id, hook.id].filter(
        (word): word is string => typeof word === 'string',
      ),
    ]
  }

  close(): Promise<void> {
    return this.#platform.remove()
  }

  /** Sends one request that matches the document, or one with a random change. */
  async play(random: SeededRandom, count: (kind: string) => void): Promise<void> {
    const { method, path: template, operation } = random.of(this.#operations)
    const wild = random.in100(75)
    const parameters = (operation.parameters ?? []).map((each) =>
      each.$ref
        ? (spec.components.parameters?.[each.$ref.split('/').at(-1) as string] as Parameter)
        : each,
    )
    let path = template.replaceAll(/\{\w+\}/g, () =>
      encodeURIComponent(
        (wild && random.in100(30)
          ? random.in100(50)
            ? oddText(random)
            : mutateText(random, random.of(this.#words))
          : random.of(this.#words)
        )
          .toWellFormed()
          .slice(0, 400),
      ),
    )
    const query = parameters
      .filter((each) => each.in === 'query' && (each.required || random.in100(40)))
      .map(({ name, schema, example }) => {
        const right =
          example !== undefined && random.in100(30) ? example : meant(random, schema, this.#words)
        return [
          name,
          String(
            wild && random.in100(30)
              ? random.in100(50)
                ? oddText(random)
                : mutateText(random, String(right))
              : right,
          )
            .toWellFormed()
            .slice(0, 2000),
        ] as const
      })
    if (wild && random.in100(5))
      query.push([
        oddText(random).toWellFormed().slice(0, 200),
        oddText(random).toWellFormed().slice(0, 200),
      ])
    if (query.length > 0)
      path += `?${query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')}`
    const media = Object.values(operation.requestBody?.content ?? {})[0]
    let body: unknown
    if (media && !(wild && random.in100(3))) {
      const examples = [
        media.example,
        ...Object.values(media.examples ?? {}).map(({ value }) => value),
      ].filter((each) => each !== undefined)
      body =
        examples.length > 0 && random.in100(40)
          ? random.of(examples)
          : meant(random, media.schema, this.#words)
      if (wild) body = random.in100(6) ? random.of(ODD_JSON) : mutateJson(random, body)
      if (typeof body !== 'string') body = JSON.stringify(body)
    } else if (method !== 'GET' && random.in100(50))
      body = JSON.stringify(wild ? oddValue(random) : {})
    const user = random.in100(4) ? this.#reader : this.user
    const input = {
      operation: operation.operationId,
      method,
      path,
      body: typeof body === 'string' ? body.slice(0, 3000) : body,
    }
    // `call` compares the response with the document, including its schema and statuses, and throws
    // if they differ.
    const response = call(user, method, path, body).catch((error: unknown) => {
      throw new Found('the answer is not as described, or none', input, error)
    })
    const answer = await Promise.race([response, sleep(ANSWER_MS_MAX, null, { ref: false })])
    if (answer === null)
      throw new Found(
        `${operation.operationId} was not answered within ${ANSWER_MS_MAX / 1000} s`,
        input,
      )
    count(`${answer.status}`)
    if (
      answer.status >= 500 &&
      !(
        answer.status === 503 &&
        /^(NETWORK|EXCHANGE|PROVIDER|PRICE)_UNAVAILABLE$/.test(String(answer.body['code']))
      )
    )
      throw new Found(
        `${operation.operationId} answered ${answer.status} ${String(answer.body['code'])}`,
        { ...input, answer: answer.text.slice(0, 600) },
      )
  }
}
