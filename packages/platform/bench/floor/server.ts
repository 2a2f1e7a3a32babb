import { createHash, createPublicKey, randomUUID, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Fastify, { type FastifyRequest } from 'fastify'
import pg from 'pg'

/**
 * What the API's figures are held against: the least program that does the same. A bare route, a
 * check of the signature, one call for nonce and allowance, one indexed select or one call that
 * writes the rows of a transfer; everything is prepared.
 *
 * FLOOR_DATABASE: its URL. FLOOR_KEY: file of the callers' public key. FLOOR_USERS: file of {@link
 * FloorUser} by API key, as JSON.
 */
export interface FloorUser {
  workspace: string
  subAccount: string
  wallet: string
  /** Of `floor.ledger_accounts`. */
  available: string
  reserved: string
  prepaid: string
  prepaidReserved: string
}

const pool = new pg.Pool({ connectionString: String(process.env['FLOOR_DATABASE']), max: 24 })
const publicKey = createPublicKey(readFileSync(String(process.env['FLOOR_KEY']), 'utf8'))
const users = new Map(
  Object.entries(
    JSON.parse(readFileSync(String(process.env['FLOOR_USERS']), 'utf8')) as Record<
      string,
      FloorUser
    >,
  ),
)
const MINUTE_MS = 60_000
const LIMIT = 1_000_000_000

interface Claims {
  sub: string
  nonce: string
  exp: number
  uri: string
  bodyHash: string
}

/** Whose request it is, or null where it is not authentic, too old, or one too many. */
async function admit(
  request: FastifyRequest,
  body: Buffer | string,
): Promise<{ apiKey: string; user: FloorUser; token: string } | null> {
  const token = String(request.headers.authorization).slice('Bearer '.length)
  const apiKey = String(request.headers['x-api-key'])
  const user = users.get(apiKey)
  const end = token.lastIndexOf('.')
  if (
    !user ||
    !verify(
      'RSA-SHA256',
      Buffer.from(token.slice(0, end)),
      publicKey,
      Buffer.from(token.slice(end + 1), 'base64url'),
    )
  )
    return null
  const claims = JSON.parse(
    Buffer.from(token.split('.')[1] as string, 'base64url').toString(),
  ) as Claims
  const now = Date.now()
  const hash = createHash('sha256').update(body).digest('hex')
  if (
    claims.sub !== apiKey ||
    claims.exp * 1000 < now ||
    claims.uri !== request.url ||
    claims.bodyHash !== hash
  )
    return null
  const { rows } = await pool.query<{ admit: boolean }>({
    name: 'admit',
    text: 'select floor.admit($1, $2, $3, $4, $5)',
    values: [apiKey, claims.nonce, new Date(now - (now % MINUTE_MS)), LIMIT, new Date(now)],
  })
  return rows[0]?.admit ? { apiKey, user, token } : null
}

const server = Fastify({ logger: false, keepAliveTimeout: 65_000 })
server.removeAllContentTypeParsers()
server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
  done(null, body),
)
server.get('/dac/v1/wallets', async (request, reply) => {
  const admitted = await admit(request, '')
  if (!admitted) return reply.code(401).send({})
  const { rows } = await pool.query({
    name: 'wallet',
    text: 'select id, asset, status, created_at from floor.wallets where sub_account_id = $1 and asset = $2',
    values: [admitted.user.subAccount, (request.query as { asset: string }).asset],
  })
  return reply.send(rows)
})
server.post('/dac/v1/transaction', async (request, reply) => {
  const body = request.body as Buffer
  const admitted = await admit(request, body)
  if (!admitted) return reply.code(401).send({})
  const { apiKey, user, token } = admitted
  const text = body.toString('utf8')
  const requested = JSON.parse(text) as {
    amount: number
    destination_address: string
    sequence_id: string
  }
  const id = randomUUID()
  const amount = Math.round(requested.amount * 1e9).toString() + '000000000'
  const response = JSON.stringify({
    id,
    asset: 'ETH',
    amount: requested.amount,
    destination: requested.destination_address,
    status: 'pending',
    fee: '0.000021',
    source: user.wallet,
    sequence_id: requested.sequence_id,
    created_at: new Date().toISOString(),
  })
  const { rows } = await pool.query<{ transfer: boolean }>({
    name: 'transfer',
    text: 'select floor.transfer($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)',
    values: [
      id,
      user.workspace,
      user.subAccount,
      user.wallet,
      requested.sequence_id,
      createHash('sha256').update(text).digest('hex'),
      response,
      amount,
      requested.destination_address,
      JSON.stringify({ api_key: apiKey, token, method: 'POST', uri: request.url, body: text }),
      '500000',
      user.available,
      user.reserved,
      user.prepaid,
      user.prepaidReserved,
      new Date(),
    ],
  })
  return rows[0]?.transfer
    ? reply.type('application/json').send(response)
    : reply.code(400).send({})
})
process.on(
  'SIGTERM',
  () =>
    void server
      .close()
      .then(() => pool.end())
      .then(() => process.exit(0)),
)
// The process that started this one has ended.
process.on('disconnect', () => process.exit(0))
process.stdout.write(`ready ${await server.listen({ port: 0, host: '127.0.0.1' })}\n`)
