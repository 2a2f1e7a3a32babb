// The commit rule of CONTRIBUTING.md: `scope: imperative summary`, at most 72 characters.

/** Endings of words that are not imperatives: "added", "adding", "adds". */
const INFLECTED = /(?:ed|ing|[^sui]s)$/
/** Imperatives with one of these endings. */
const IMPERATIVES = new Set([
  'bring',
  'embed',
  'exceed',
  'feed',
  'need',
  'proceed',
  'seed',
  'speed',
  'string',
])

/** Fails if the summary does not begin with an imperative in lower case. */
function imperative({ type, subject }) {
  const [first = ''] = (subject ?? '').split(/[\s,:;]/)
  if (type === 'merge') return [true]
  if (IMPERATIVES.has(first)) return [true]
  return [
    /^[a-z][a-z-]*$/.test(first) && !INFLECTED.test(first),
    `summary must begin with an imperative in lower case, such as "add", not ${JSON.stringify(first)}`,
  ]
}

export default {
  parserPreset: {
    parserOpts: {
      headerPattern: /^([a-z0-9][\w./-]*(?:\([\w./, -]+\))?): (.+)$/,
      headerCorrespondence: ['type', 'subject'],
    },
  },
  plugins: [{ rules: { 'subject-imperative': imperative } }],
  rules: {
    'header-max-length': [2, 'always', 72],
    'type-empty': [2, 'never'],
    'subject-empty': [2, 'never'],
    'subject-full-stop': [2, 'never', '.'],
    'subject-imperative': [2, 'always'],
  },
  helpUrl: 'CONTRIBUTING.md, "Commits and pull requests"',
}
