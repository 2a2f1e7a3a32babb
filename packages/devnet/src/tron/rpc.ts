import type { Faults } from '../faults.ts'
import type { TronChain } from './chain.ts'
import { BUILDERS, METHODS } from './methods.ts'
import type { Body } from './parameters.ts'
import { hexText } from './api-objects.ts'
import { toJson, withBase58 } from './transaction.ts'

const BROADCASTS = new Set(['broadcasttransaction', 'broadcasthex'])

/** Removes internal transactions, as of a node that does not store them. */
function withoutInternal(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(withoutInternal)
  if (typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(
    Object.entries(answer).filter(([name]) => name !== 'internal_transactions'),
  )
}

/**
 * Handles one request of java-tron's HTTP API. Undefined closes the connection without a response.
 */
export async function tronRpc(
  chain: TronChain,
  faults: Faults,
  path: string,
  text: string,
): Promise<{ status: number; body: string } | undefined> {
  const [side, name = ''] = path.split('/')
  const solid = side === 'walletsolidity'
  const method = solid || side === 'wallet' ? METHODS[name] : undefined
  if (!method || (solid && BUILDERS.has(name)))
    return { status: 404, body: '{"Error":"Not Found"}' }
  try {
    const body = text.trim() === '' ? {} : (JSON.parse(text) as Body)
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      throw new Error('the body is no JSON object')
    if (BROADCASTS.has(name) && faults.mode === 'reject') {
      return {
        status: 200,
        body: toJson({ code: 'SERVER_BUSY', message: hexText('the server is busy') }),
      }
    }
    const visible = body['visible'] === true || body['visible'] === 'true'
    const result = await chain.lock.read(async () => method({ chain, body, visible, solid }))
    const answer = faults.mode === 'no-internal' ? withoutInternal(result) : result
    if (BROADCASTS.has(name) && faults.mode === 'drop-answer') return undefined
    return { status: 200, body: toJson(visible ? withBase58(answer) : answer) }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { status: 200, body: toJson({ Error: `class ${error.name} : ${error.message}` }) }
  }
}
