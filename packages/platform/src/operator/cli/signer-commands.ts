import { ORDER, STAKE, TANK, WISH, type Definition } from './definition.ts'

/** On one machine by its number, on a host of its own by its home. */
const WHICH = {
  'node N': '1, 2 or 3, where all are on this machine',
  'home HOME': 'home of the signer node on this host',
}
const AT_NODE = { '!home HOME': 'home of the signer node on this host' }
const signer = () => import('./signer.ts')

/**
 * Commands about a signer node: all that its operator has on its host, and part of the commands
 * where everything is one machine.
 */
export const SIGNER_COMMANDS: readonly Definition[] = [
  {
    usage: 'signer status',
    summary: 'what each node says of itself; with --home the one on this host, without a platform',
    options: { 'home HOME': 'home of the signer node on this host' },
    run: async () => (await signer()).status,
  },
  {
    usage: 'signer refresh',
    summary: 'new shares of every key, or of one workspace’s',
    options: { 'workspace W': 'one workspace', ...WHICH },
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
    summary:
      'Ban a peer permanently at a signer node: it signs nothing with that peer from then on.',
    options: {
      ...WHICH,
      '!peer N': 'number of the node to ban',
      'reason TEXT': 'for the record; at most 200 characters',
    },
    run: async () => (await signer()).ban,
  },
  {
    usage: 'signer backup',
    summary: 'a node’s shares, encrypted to its recovery key; never overwrites',
    options: { ...WHICH, '!out FILE': 'where to' },
    run: async () => (await signer()).backup,
  },
  {
    usage: 'signer restore',
    summary: 'a node whose host was lost, from its backup and its peers',
    options: {
      ...WHICH,
      '!in FILE': 'the backup',
      '!recovery-secret FILE': 'its recovery secret',
      preview: 'says what would be restored',
      'confirm CODE': 'of the preview that you read; needed outside local',
    },
    run: async () => (await signer()).restore,
  },
  {
    usage: 'signer enrol',
    summary: 'on a signer node’s own host (docs/enrolment.md)',
    options: { ...AT_NODE, ...WISH, 'api-key KEY': 'as another node printed it' },
    run: async () => (await signer()).enrol,
  },
  {
    usage: 'signer revoke',
    summary: 'on a signer node’s own host',
    options: { ...AT_NODE, '!api-key KEY': 'the API key' },
    run: async () => (await signer()).revoke,
  },
  {
    usage: 'signer drain',
    summary: 'on a signer node’s own host',
    options: { ...AT_NODE, ...TANK, '!to ADDRESS': 'where to', ...ORDER },
    run: async () => (await signer()).drain,
  },
  {
    usage: 'signer stake',
    summary: 'on a signer node’s own host',
    options: { ...AT_NODE, ...TANK, ...STAKE, ...ORDER },
    run: async () => (await signer()).stake,
  },
  {
    usage: 'signer unstake',
    summary: 'on a signer node’s own host',
    options: { ...AT_NODE, ...TANK, ...STAKE, ...ORDER },
    run: async () => (await signer()).unstake,
  },
  {
    usage: 'signer release',
    summary: 'on a signer node’s own host',
    options: { ...AT_NODE, ...TANK, ...ORDER },
    run: async () => (await signer()).release,
  },
]
