import { z } from 'zod'
import { INT_MAX, KEY_MAX, NAME_MAX, NODES, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
}

const HEX = 'lower-case hex'
/** Curves; a workspace has one key for each. */
const CURVES = ['secp256k1', 'ed25519'] as const
const keyShape = z
  .object({
    workspace: z.string().max(NAME_MAX),
    curve: z.enum(CURVES),
    key_id: z.string().max(WORD_MAX),
    public_key: z.string().max(KEY_MAX).meta({ description: HEX }),
    chain_code: z.string().max(KEY_MAX).meta({ description: HEX }),
    mode: z
      .string()
      .max(WORD_MAX)
      .meta({ description: 'Network mode for which the nodes certified the key' }),
    epoch: z.int().min(0).max(INT_MAX),
    certificates: z
      .array(
        z.object({
          node: z.int().min(1).max(3),
          signature: z
            .string()
            .max(KEY_MAX)
            .meta({
              description: `Ed25519, ${HEX}, over custody/key-certificate/v1, a line feed, and the JSON of the fields above`,
            }),
        }),
      )
      .max(NODES),
  })
  .meta({ id: 'CertifiedKey' })

interface KeyRow {
  curve: string
  key_id: string
  public_key: string
  chain_code: string
  epoch: number
  certificates: { node: number; signature: string }[]
}

/**
 * Lists the workspace's public keys with the certificates of each signer node: everything that is
 * needed to derive and verify its addresses without trusting this service.
 */
export const listKeys = endpoint({
  id: 'listKeys',
  tag: 'Addresses',
  description:
    'Returns the workspace’s public keys, chain codes and the certificates of the three signer nodes. Together with the operator’s trust file, they allow verification of an address without trusting this service.',
  method: 'GET',
  path: '/dac/v1/keys',
  summary: "List the workspace's keys with the signer nodes' certificates",
  access: 'read',
  response: z.object({
    network: z.string().max(WORD_MAX),
    keys: z.array(keyShape).max(CURVES.length),
  }),
  async handler({ caller }, services: Services) {
    const mode = services.settings.network
    const rows = await services.database.query<KeyRow>(
      `select curve, key_id, encode(public_key, 'hex') public_key,
        encode(chain_code, 'hex') chain_code, epoch, certificates
       from workspace_keys where workspace_id = $1 order by curve desc`,
      [caller.workspaceId],
    )
    const keys = rows.map(({ epoch, certificates, ...key }) => ({
      workspace: caller.workspace,
      ...key,
      mode,
      epoch,
      certificates,
    }))
    return { body: { network: mode, keys } }
  },
})
