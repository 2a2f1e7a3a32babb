import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { EXPLANATIONS, RETRIES } from '../../core/errors-explained.ts'

/**
 * Returns docs/errors.md, generated from the registry: one heading, and therefore one anchor, for
 * each code.
 */
export function errorsDocument(): string {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  const sections = codes.map((code) => {
    const [status, title] = ERRORS[code]
    const { why, action, retry } = EXPLANATIONS[code]
    return `## ${code}\n\n**${status}** · ${title}.\n\n${why} ${action}\n\n${RETRIES[retry]}\n`
  })
  return `# Errors

<!-- made by scripts/errors-page.mjs -->

If a request fails, the response is \`application/problem+json\` with \`code\` and \`message\`. If one field is the cause, \`field\` contains
its name. \`type\` is the URL of the code on your own platform, \`/reference/errors#CODE\`, with the same text as on this page. The meaning of
a code never changes.

${sections.join('\n')}`
}
