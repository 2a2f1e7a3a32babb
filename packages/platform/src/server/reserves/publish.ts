import { reasonOf } from '@custody/chains/reason'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import { ApiError } from '../../core/errors.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { surplusOf, takeSnapshot, type Snapshot } from './snapshot.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  log: Logger
  aml: Aml
}

const SIGNATURES_NEEDED = 2
/**
 * Timeout in milliseconds for the signature of a node, which derives every listed address first.
 */
const ATTEST_TIMEOUT_MS = 120_000
/** Maximum number of snapshots; amounts that move during a snapshot settle within seconds. */
const ATTEMPTS_MAX = 4
const PAUSE_MS = 1000

interface NodeSignature {
  node: number
  signature: string
}
export interface Publication extends Snapshot {
  signatures: NodeSignature[]
  /** Nodes that did not sign, and why. */ problems: string[]
}

/** Returns the bytes that each node signs; see packages/signer/README.md, POST /attest. */
const attestationText = (hash: string): string =>
  `custody/reserves/v1\n${JSON.stringify({ statement: hash })}`

/** Returns the context to which a snapshot's secret is sealed. */
export const secretOwner = (id: string): string => `reserves ${id}`

async function attested(
  { signers }: Services,
  snapshot: Snapshot,
): Promise<Pick<Publication, 'signatures' | 'problems'>> {
  const { statement, holdings, hash } = snapshot
  const [signatures, problems]: [NodeSignature[], string[]] = [[], []]
  await Promise.all(
    signers.peers.map(async ({ node }) => {
      try {
        const { signature } = await signers.call<{ signature: string }>(
          node,
          'POST',
          '/attest',
          { statement, holdings },
          ATTEST_TIMEOUT_MS,
        )
        if (signers.verify(node, attestationText(hash), signature))
          signatures.push({ node, signature })
        else problems.push(`signer ${node} signed another statement`)
      } catch (error) {
        if (!(error instanceof NodeRefused || error instanceof NodeUnavailable)) throw error
        problems.push(`signer ${node}: ${reasonOf(error)}`)
      }
    }),
  )
  if (signatures.length < SIGNATURES_NEEDED) {
    throw new ApiError(
      'SIGNERS_UNAVAILABLE',
      `nothing was published: ${SIGNATURES_NEEDED} nodes must sign it; ${problems.join('; ')}`,
    )
  }
  return { signatures: signatures.sort((a, b) => a.node - b.node), problems }
}

/**
 * Reads chains and ledger, has the nodes sign the result, and stores it permanently. If more
 * appears to be owed than held, the snapshot is repeated, because something may have moved in
 * between; a deficit that remains is published as it is.
 *
 * @throws ApiError `NETWORK_UNAVAILABLE`, `SIGNERS_UNAVAILABLE`; nothing is published in that case
 */
export async function publishReserves(services: Services): Promise<Publication> {
  let snapshot = await takeSnapshot(services)
  for (
    let attempt = 1;
    attempt < ATTEMPTS_MAX && snapshot.assets.some((each) => surplusOf(each) < 0n);
    attempt++
  ) {
    await services.environment.sleep(PAUSE_MS)
    snapshot = await takeSnapshot(services)
  }
  const publication = { ...snapshot, ...(await attested(services, snapshot)) }
  await store(services, publication)
  services.log.info(
    { snapshot: publication.id, hash: publication.hash, signatures: publication.signatures.length },
    'a statement of reserves was published',
  )
  return publication
}

async function store({ database, aml }: Services, publication: Publication): Promise<void> {
  const { id, time, statement, holdings, hash, signatures, secret, leaves } = publication
  await database.transaction(async (tx) => {
    await tx.query(
      `insert into reserve_snapshots (id, created_at, statement, holdings, hash, signatures, secret)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [
        id,
        time,
        statement,
        holdings,
        hash,
        JSON.stringify(signatures),
        aml.secrets.seal(secretOwner(id), secret.toString('hex')),
      ],
    )
    await tx.query(
      `insert into reserve_leaves (snapshot_id, asset, place, sub_account_id, hash, nonce, balance)
       select $1, * from unnest($2::text[], $3::int[], $4::uuid[], $5::bytea[], $6::bytea[],
         $7::numeric[])`,
      [
        id,
        leaves.map((each) => each.asset),
        leaves.map(({ place }) => place),
        leaves.map(({ subAccountId }) => subAccountId),
        leaves.map((each) => each.hash),
        leaves.map(({ nonce }) => nonce),
        leaves.map(({ sum }) => String(sum)),
      ],
    )
  })
}
