import { PolicyError } from '@custody/policy'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { Peers } from '../transport/peers.ts'
import type { Policies } from './policies.ts'

const CHAIN = '/peer/policy/chain'
/** Maximum number of documents of a workspace: one each hour for five years. */
const CHAIN_MAX = 50_000

const askSchema = z.strictObject({ workspace: z.string().min(1).max(200) })
/** Hashes of the documents that came into force at a node, the first one first. */
const chainSchema = z.strictObject({
  chain: z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(CHAIN_MAX),
})

interface Parts {
  policies: Policies
  peers: Pick<Peers, 'call' | 'handle' | 'nodes'>
  timeoutMs: number
}

/** Answers peers which documents came into force here. */
export function onChains({ policies, peers }: Pick<Parts, 'policies' | 'peers'>): void {
  peers.handle(CHAIN, async (_node, body) => {
    const { workspace } = askSchema.parse(body)
    return { chain: policies.held(workspace).chain.map(({ hash }) => hash) }
  })
}

/**
 * Returns the hashes of the documents that came into force at both peers, the first one first.
 * @param hash of the document that both must have in force
 * @throws PolicyError `OTHER_POLICY` if a peer has another document in force, or none
 * @throws Refusal `PEER_UNAVAILABLE`
 */
export async function chainsOfPeers(
  { peers, timeoutMs }: Parts,
  workspace: string,
  hash: string,
): Promise<string[]> {
  const chains = await Promise.all(
    peers.nodes.map(async (node) => {
      const answer = await peers.call(node, CHAIN, { workspace }, { timeout: timeoutMs })
      const parsed = chainSchema.safeParse(answer)
      if (!parsed.success)
        throw new Refusal(
          'PEER_UNAVAILABLE',
          `Node ${node} answered with an unknown format which policies it had in force`,
          { node },
        )
      const { chain } = parsed.data
      const held = chain.at(-1)
      if (held === hash) return chain
      const has = held === undefined ? 'no policy' : `the policy ${chain.length} with hash ${held}`
      throw new PolicyError('OTHER_POLICY', 'hash', `Node ${node} has ${has} in force`)
    }),
  )
  const [one = [], other = []] = chains
  // Each document contains the hash of the one before it, so honest nodes cannot differ here.
  if (one.join() !== other.join())
    throw new PolicyError('OTHER_POLICY', 'hash', 'The peers had different policies before it')
  return one
}
