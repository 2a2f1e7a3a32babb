import { WORKSPACE, type Definition } from './definition.ts'

const policy = () => import('./policy.ts')
const stops = () => import('./policy-stop.ts')
const vetoes = () => import('./policy-veto.ts')
const inputs = () => import('./policy-inputs.ts')
const signer = () => import('./signer-policy.ts')
const analysis = () => import('./policy-analysis.ts')

const SIGN = {
  '!as PERSON': 'ID of the person in the policy document',
  '!key KEYFILE': 'PEM file with the private key of that person, Ed25519 or P-256',
}
const FIRST = {
  '!file FILE': 'policy file with the first document and the proofs of all its keys',
  'confirm HASH': 'hash of the document, which confirms that it was compared (required on mainnet)',
}
const SCOPE = { 'sub-account NAME': 'name of the sub-account (default: the whole workspace)' }
const RESET = {
  'file FILE':
    'policy file with the document that replaces the one in force, and the proofs of all its keys (required without --cancel)',
  'confirm HASH': 'hash of the document, which confirms that it was compared (required on mainnet)',
  cancel: 'withdraw the reset that was entered here (default: enter one)',
}
const AT_NODE = { '!home HOME': 'home folder of the signer node on this host' }
const HASH = { '!hash HASH': 'hash of the policy document, 64 lower-case hex digits' }

const approvals = () => import('./approve.ts')

/** Commands about the policies of workspaces. */
export const POLICY_COMMANDS: readonly Definition[] = [
  {
    usage: 'approve <ID>',
    summary:
      'Print what a transfer or a policy change does that waits for approvals, and approve or reject it as a person of the policy.',
    args: { ID: 'ID of the transfer or the policy change, as "npx custody approvals" prints it' },
    options: {
      ...SIGN,
      reject: 'reject it: the transfer fails, or the change is vetoed (default: approve it)',
    },
    run: async () => (await approvals()).approve,
  },
  {
    usage: 'approvals',
    summary:
      'List the transfers and policy changes that wait for approvals by the policy of their workspace.',
    options: { 'workspace W': 'name of the workspace (default: all)' },
    run: async () => (await approvals()).list,
  },
  {
    usage: 'policy check <FILE>',
    summary:
      'Check a policy file offline: print its hash, its people and rules as sentences, and every finding; exit 1 if there is an error.',
    args: { FILE: 'policy file, or a file with a document alone' },
    run: async () => (await policy()).check,
  },
  {
    usage: 'policy sign <FILE>',
    summary:
      'Add a person’s proof that they hold their key to a policy file, and print which proofs are missing.',
    args: { FILE: 'policy file, or a file with a document alone, which is rewritten' },
    options: SIGN,
    run: async () => (await policy()).sign,
  },
  {
    usage: 'policy place',
    summary:
      'Print the values of the fields mode, workspace and nodes for a policy document of this installation.',
    options: WORKSPACE,
    run: async () => (await policy()).place,
  },
  {
    usage: 'policy install',
    summary:
      'Enter the first policy document of a workspace at every signer node of this machine; exit 2 if a confirmation is still required.',
    options: { ...WORKSPACE, ...FIRST },
    run: async () => (await policy()).install,
  },
  {
    usage: 'policy uninstall',
    summary:
      'Remove the policy of a workspace at every signer node of this machine, which only the mode local permits.',
    options: WORKSPACE,
    run: async () => (await policy()).uninstall,
  },
  {
    usage: 'policy reset',
    summary:
      'Enter at every signer node of this machine the document by which a reset replaces a policy that its people cannot change any more, seven days later; exit 2 if a confirmation is still required.',
    options: { ...WORKSPACE, ...RESET },
    run: async () => (await policy()).reset,
  },
  {
    usage: 'policy show',
    summary:
      'Print the policy in force at the signer nodes of this machine, the pending change and the stops; exit 1 if the nodes differ.',
    options: WORKSPACE,
    run: async () => (await policy()).show,
  },
  {
    usage: 'policy diff <FILE>',
    summary:
      'Compare a policy file with the document in force: print what each change allows or forbids; exit 1 if the file has an error.',
    args: { FILE: 'policy file, or a file with a document alone' },
    run: async () => (await analysis()).compare,
  },
  {
    usage: 'policy simulate <FILE>',
    summary:
      'Judge past transfers of a workspace by a policy file and by the document in force, and list those whose result differs.',
    args: { FILE: 'policy file, or a file with a document alone' },
    options: {
      ...WORKSPACE,
      'last N': 'number of transfers to judge, from 1 to 10000 (default: 1000)',
    },
    run: async () => (await analysis()).simulateFile,
  },
  {
    usage: 'policy draft',
    summary:
      'Print a policy document that would have allowed the transfers of the last 90 days, with the fields to fill in.',
    options: WORKSPACE,
    run: async () => (await import('./policy-draft.ts')).draft,
  },
  {
    usage: 'policy propose',
    summary:
      'Propose the next policy document, whose approvals the platform collects; with --as, add an approval to the file instead, and present it to the signer nodes when they are sufficient.',
    options: {
      ...WORKSPACE,
      '!file FILE': 'policy file with the next document and the proofs of its new keys',
      'as PERSON':
        'ID of the person in the policy in force, who approves in the file (default: propose to the platform, or present a file with approvals)',
      'key KEYFILE': 'PEM file with the private key of --as, Ed25519 or P-256',
      'comment TEXT': 'why the policy changes, for the proposal to the platform',
      'in SECONDS':
        'time until the change comes into force, for the proposal or the first approval, in seconds (default: the delay of the policy in force, on mainnet 3600 more)',
    },
    run: async () => (await import('./policy-propose.ts')).propose,
  },
  {
    usage: 'policy stop',
    summary:
      'Stop all signing for a workspace or one sub-account, and write the file that ends it.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      ...SCOPE,
      'reason TEXT': 'reason to record, at most 200 characters (default: no reason given)',
      'out FILE':
        'file to write with the signed stop (default: policy-stops/HASH.json in the home folder)',
    },
    run: async () => (await stops()).stop,
  },
  {
    usage: 'policy resume',
    summary:
      'Add a person’s approval of the end of a stop to its file, and end the stop when the approvals are sufficient.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      ...SCOPE,
      'file FILE':
        'file with the signed stop, as "policy stop" wrote it (default: policy-stops/HASH.json in the home folder)',
    },
    run: async () => (await stops()).resume,
  },
  {
    usage: 'policy approve-enrolment',
    summary:
      'Add a person’s approval of an API key’s enrolment to a file, and present it to the signer nodes when the approvals are sufficient; exit 2 if a confirmation is still required.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      '!api-key KEY': 'API key that the operators have enrolled, a UUID',
      'confirm FINGERPRINT':
        'SHA-256 of the public key, which confirms that it was compared with the requester (required on mainnet)',
      'file FILE':
        'file with the approvals of the others (default: policy-enrolments/KEY.json in the home folder)',
    },
    run: async () => (await inputs()).approveEnrolment,
  },
  {
    usage: 'policy approve-order',
    summary:
      'Add a person’s approval of an order to drain or stake a gas tank to a file, and present it to the signer nodes when the approvals are sufficient; exit 2 if a confirmation is still required.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      '!order ORDER': 'ID of the order that the operators have entered',
      'confirm VALUE':
        'address that receives the balance, or amount of the stake in TRX, which confirms that it was compared with its source (required on mainnet)',
      'file FILE':
        'file with the approvals of the others (default: policy-orders/ORDER.json in the home folder)',
    },
    run: async () => (await inputs()).approveOrder,
  },
  {
    usage: 'policy veto',
    summary:
      'Veto a change of the policy at the signer nodes of this machine, which inform each other.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      '!hash HASH': 'hash of the document that would come into force, as "policy show" prints it',
    },
    run: async () => (await vetoes()).veto,
  },
  {
    usage: 'policy suspend',
    summary:
      'Suspend a key of another person for seven days: it approves nothing, and can still veto, stop and reject.',
    options: {
      ...WORKSPACE,
      ...SIGN,
      '!person PERSON': 'ID of the person whose key is suspended',
      '!key-id ID': 'ID of their key in the policy document',
      'reason TEXT': 'reason to record, at most 200 characters (default: no reason given)',
    },
    run: async () => (await vetoes()).suspend,
  },
]

/** Commands about the policy at one signer node, on its own host. */
export const SIGNER_POLICY_COMMANDS: readonly Definition[] = [
  {
    usage: 'signer policy install',
    summary:
      'Enter the first policy document of a workspace at the signer node of this host. Run it at each node (docs/policies.md).',
    options: { ...AT_NODE, ...WORKSPACE, ...FIRST },
    run: async () => (await signer()).install,
  },
  {
    usage: 'signer policy reset',
    summary:
      'Enter the document by which a reset replaces the policy, at the signer node of this host. Run it at all three nodes; it is in force seven days after the last of them.',
    options: { ...AT_NODE, ...WORKSPACE, ...RESET },
    run: async () => (await signer()).reset,
  },
  {
    usage: 'signer policy show',
    summary: 'Print the policy in force at the signer node of this host.',
    options: { ...AT_NODE, ...WORKSPACE },
    run: async () => (await signer()).show,
  },
  {
    usage: 'signer policy present',
    summary:
      'Present a signed change, statement, end of a stop or approvals to the signer node of this host, which informs its peers.',
    options: {
      ...AT_NODE,
      '!file ITEMFILE': 'JSON file with the signed item, such as the file of a stop',
    },
    run: async () => (await signer()).present,
  },
  {
    usage: 'signer policy confirm',
    summary:
      'Confirm, at the signer node of this host, a pending change that a person whom it removes has vetoed. Two nodes are required.',
    options: { ...AT_NODE, ...WORKSPACE, ...HASH },
    run: async () => (await signer()).confirm,
  },
  {
    usage: 'signer policy follow',
    summary:
      'Replace what differs at the signer node of this host from the policy that both other nodes have in force, after a change reached only a part of the nodes.',
    options: { ...AT_NODE, ...WORKSPACE, ...HASH },
    run: async () => (await signer()).follow,
  },
  {
    usage: 'signer policy accept',
    summary:
      'Let the signer node of this host sign by the policy in force there although it has not read the policies of a peer. The decision is recorded, and ends when the node is restored again.',
    options: { ...AT_NODE, ...WORKSPACE, ...HASH },
    run: async () => (await signer()).accept,
  },
]
