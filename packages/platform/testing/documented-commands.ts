import { blocksOf, type Block } from './documents.ts'

/** Commands that are tested elsewhere: the checks, and the environment that already runs. */
export const TESTED_ELSEWHERE: Record<string, string> = {
  'npm ci && npm run demo': 'installing is done; the demo’s steps are tested one by one',
  'npm ci && npm test': 'this is it',
  'npm start': 'the platform of this test',
  'npm run check -- token':
    'contributing.long follows docs/adding-a-chain.md in a copy of the tree',
  'npm run check -- network': 'there, too',
  'npm run check -- coin': 'there, too',
  'npx node scripts/new-family.mjs toy':
    'new-family follows docs/adding-a-chain.md in a copy of the tree',
  'npm run check -- family toy': 'there, too',
}

/** Pages whose commands continue the session of README. */
export const FOLLOW_UP_PAGES = [
  'wallets',
  'transfers',
  'fees',
  'screening',
  'staking',
  'auto-forwarding',
  'webhooks',
  'restoring-a-database',
].map((name) => `docs/${name}.md`)

/** Returns the shell blocks of a document. */
export const shellBlocks = (file: string): Block[] =>
  blocksOf(file).filter(({ language }) => language === 'sh')
