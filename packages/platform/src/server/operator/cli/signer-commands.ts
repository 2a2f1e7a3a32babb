import { STAKE, STAKE_TANK, TANK, WISH, type Definition } from './definition.ts'
import { SIGNER_POLICY_COMMANDS } from './policy-commands.ts'

/**
 * Options that select a node: by its number if all run on this machine, or by its data folder on
 * its own host.
 */
const WHICH = {
  'node N':
    'number of the signer node, 1 to 3, if all run on this machine (required without --home)',
  'home HOME': 'home folder of the signer node on this host',
}
const AT_NODE = { '!home HOME': 'home folder of the signer node on this host' }
const ORDER = {
  'order ID': 'ID of the order, as the first signer node printed it (default: a new order)',
}
const signer = () => import('./signer.ts')

/**
 * Commands about a signer node. On a signer's host they are all commands; on a machine that runs
 * everything they are a part of the commands.
 */
export const SIGNER_COMMANDS: readonly Definition[] = [
  {
    usage: 'signer status',
    summary:
      'Print whether each signer node is ready, with its number of keys; exit 1 if one is not. With --home, query that node without the platform.',
    options: {
      'home HOME':
        'home folder of the signer node on this host (default: all nodes, by the platform)',
    },
    run: async () => (await signer()).status,
  },
  {
    usage: 'signer refresh',
    summary:
      'Replace the key shares of all signer nodes by new ones. Keys and addresses do not change.',
    options: {
      'workspace W': 'workspace whose keys are refreshed (default: all)',
      ...WHICH,
      'node N':
        'number of the signer node that starts the refresh, if all run on this machine (default: the first)',
    },
    run: async () => (await signer()).refresh,
  },
  {
    usage: 'signer bans',
    summary: 'List the peers that a signer node has banned, and the bans that its peers reported.',
    options: WHICH,
    run: async () => (await signer()).bans,
  },
  {
    usage: 'signer ban',
    summary: 'Ban a peer permanently at a signer node: the node never signs with that peer again.',
    options: {
      ...WHICH,
      '!peer N': 'number of the peer to ban, 1 to 3',
      'reason TEXT': 'reason to record, at most 200 characters (default: ordered by the operator)',
    },
    run: async () => (await signer()).ban,
  },
  {
    usage: 'signer backup',
    summary: 'Write the key shares of a signer node to a file, encrypted to its recovery key.',
    options: { ...WHICH, '!out FILE': 'file to write; never overwritten' },
    run: async () => (await signer()).backup,
  },
  {
    usage: 'signer restore',
    summary:
      'Restore a signer node whose host was lost from its backup, confirmed by its peers; exit 2 if a confirmation code is still required.',
    options: {
      ...WHICH,
      '!in FILE': 'backup of the node',
      '!recovery-secret FILE': 'file with the recovery secret of the node',
      preview: 'only list what would be restored; nothing is changed',
      'confirm CODE': 'confirmation code that the preview printed (required on mainnet)',
      'without NODE': 'peer whose record is not read, because it is gone or hostile',
      'drop LIST':
        'restrictions of one peer that are not taken over: IDs of the preview, separated by commas',
    },
    run: async () => (await signer()).restore,
  },
  {
    usage: 'signer enrol',
    summary:
      'Enrol an API key at the signer node of this host. Run it at each node (docs/enrolment.md).',
    options: {
      ...AT_NODE,
      ...WISH,
      'api-key KEY': 'API key, as the first signer node printed it (default: a new one)',
    },
    run: async () => (await signer()).enrol,
  },
  {
    usage: 'signer revoke',
    summary: 'Revoke an API key permanently at the signer node of this host. Run it at each node.',
    options: { ...AT_NODE, '!api-key KEY': 'API key to revoke' },
    run: async () => (await signer()).revoke,
  },
  {
    usage: 'signer drain',
    summary:
      'Approve, at the signer node of this host, an order to send a gas tank’s full balance to an address. Run it at each node, then "gas-tank drain".',
    options: { ...AT_NODE, ...TANK, '!to ADDRESS': 'address that receives the balance', ...ORDER },
    run: async () => (await signer()).drain,
  },
  {
    usage: 'signer stake',
    summary:
      'Approve, at the signer node of this host, an order to stake TRX of a gas tank. Run it at each node, then "gas-tank stake".',
    options: { ...AT_NODE, ...STAKE_TANK, ...STAKE, ...ORDER },
    run: async () => (await signer()).stake,
  },
  {
    usage: 'signer unstake',
    summary:
      'Approve, at the signer node of this host, an order to unstake TRX of a gas tank. Run it at each node, then "gas-tank unstake".',
    options: { ...AT_NODE, ...STAKE_TANK, ...STAKE, ...ORDER },
    run: async () => (await signer()).unstake,
  },
  {
    usage: 'signer release',
    summary:
      'Approve, at the signer node of this host, an order to return unstaked TRX to a gas tank. Run it at each node, then "gas-tank release".',
    options: { ...AT_NODE, ...STAKE_TANK, ...ORDER },
    run: async () => (await signer()).release,
  },
  ...SIGNER_POLICY_COMMANDS,
]
