import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { EXPLANATIONS, RETRIES, type Retry } from '../../core/errors-explained.ts'

/** Converts a text of the registry to HTML; text between backticks becomes code. */
const html = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const RETRY_WORDS: Readonly<Record<Retry, string>> = {
  never: 'No, not unchanged',
  later: 'Later',
  again: 'Yes, with increasing delays',
  reset: 'When the window ends',
}

function entry(code: ErrorCode): string {
  const [status, title] = ERRORS[code]
  const { why, action, retry } = EXPLANATIONS[code]
  return `<section class="error" id="${code}">
<h2><a href="#${code}">${code}</a><span class="status">${status}</span></h2>
<p>${html(title)}.</p>
<dl><dt>Why</dt><dd>${html(why)}</dd><dt>What to do</dt><dd>${html(action)}</dd><dt>Repeat</dt><dd>${RETRY_WORDS[retry]}</dd></dl>
</section>`
}

/**
 * Returns the page that an error's `type` refers to: every error code with its meaning, causes and
 * remedies.
 */
export function errorsPage(): string {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  const words = Object.entries(RETRIES).map(
    ([retry, says]) => `<li><strong>${RETRY_WORDS[retry as Retry]}.</strong> ${html(says)}</li>`,
  )
  return `<h1>Errors</h1>
<p>Each error is a problem (RFC 9457) with a stable <code>code</code>; its <code>type</code> is the address of that code on this page.
<code>message</code> names the field and the limit; <code>request_id</code> identifies the request in the operator’s log.</p>
<h2>Whether to repeat a request</h2>
<ul>
${words.join('\n')}
</ul>
${codes.map(entry).join('\n')}`
}
