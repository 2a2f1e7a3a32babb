import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import type { CheckoutState, Selected } from '../../state.ts'
import { useSpeech } from '../language.ts'
import { walletLink } from '../links.ts'
import { Amount, Code } from '../parts/amount.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { WalletIcon, WarningIcon } from '../parts/icons.tsx'
import { Payments } from '../parts/payments.tsx'
import { QrCode } from '@custody/site/qr'
import { Status } from '../parts/status.tsx'
import { viewOf } from '../view.ts'
import { Badge } from './choose.tsx'

/** Touch devices have wallets, so wallet links come first, and the code for another device last. */
const isHandheld = matchMedia('(pointer: coarse)').matches

/**
 * Makes a manual copy produce the same text as the button: wallets expect a decimal point, whatever
 * the language.
 */
const copyPlain = (text: string) => (event: ClipboardEvent) => {
  if (event.clipboardData === null) return
  event.clipboardData.setData('text/plain', text)
  event.preventDefault()
}

function Field({
  label,
  children,
  text,
  done,
  more,
  kind,
}: {
  label: string
  children: ComponentChildren
  /** Text that is copied. */
  text: string
  done: string
  more?: ComponentChildren
  kind: string
}) {
  const id = useId()
  return (
    <div class={`field field-${kind}`}>
      <div class="field-words">
        <p class="label" id={id}>
          {label}
        </p>
        <p class="field-value" onCopy={copyPlain(text)}>
          {children}
        </p>
      </div>
      <CopyButton text={text} done={done} labelledBy={id} />
      {more}
    </div>
  )
}

function Qr({ selected }: { selected: Selected }) {
  const { words } = useSpeech()
  const name = useId()
  const [wantsAddress, setWantsAddress] = useState(false)
  const isAddress = wantsAddress || selected.payment_uri === null
  const option = (label: string, isChosen: boolean, value: boolean) => (
    <label class={isChosen ? 'is-chosen' : ''}>
      <input type="radio" name={name} checked={isChosen} onChange={() => setWantsAddress(value)} />
      <span>{label}</span>
    </label>
  )
  return (
    <div class="qr-block">
      <div class="qr-frame">
        {isAddress ? (
          <QrCode text={selected.address} label={words.qrOfAddress} />
        ) : (
          <QrCode text={selected.payment_uri as string} label={words.qrOfLink} />
        )}
      </div>
      {selected.payment_uri === null ? (
        <p class="qr-caption">{words.qrOfAddress}</p>
      ) : (
        <fieldset class="switch">
          <legend class="sr-only">{words.qrShows}</legend>
          {option(words.paymentLink, !isAddress, false)}
          {option(words.addressOnly, isAddress, true)}
        </fieldset>
      )}
    </div>
  )
}

function Tag({ selected }: { selected: Selected }) {
  const { words } = useSpeech()
  if (selected.address_tag === null) return null
  const isMemo = selected.tag_name === 'memo'
  return (
    <Field
      kind="tag"
      label={isMemo ? words.memo : words.destinationTag}
      text={selected.address_tag}
      done={isMemo ? words.memoCopied : words.destinationTagCopied}
      more={
        <p class="tag-warning">
          <WarningIcon />
          <strong>{isMemo ? words.memoWarning : words.destinationTagWarning}</strong>
        </p>
      }
    >
      <bdi dir="ltr" class="tag">
        {selected.address_tag}
      </bdi>
    </Field>
  )
}

/** Address and amount to pay. After a partial payment, the remaining amount replaces the whole. */
export function Pay({
  state,
  selected,
  onChange,
}: {
  state: CheckoutState
  selected: Selected
  onChange: (() => void) | null
}) {
  const { words, say } = useSpeech()
  const isPartial = state.exception === 'partial'
  const { shape, tone, title } = viewOf(isPartial ? 'partial' : 'waiting')
  const { ticker } = selected
  const amount = (value: string) => <Amount amount={value} ticker={ticker} />
  const parts = { paid: amount(selected.paid_amount), due: amount(selected.due_amount) }
  const detail = isPartial ? say(words.partialDetail, parts) : words.sendExactly
  const wallet = walletLink(selected.payment_uri)
  const open =
    wallet === null ? null : (
      <a class="button primary" href={wallet} key="open">
        <WalletIcon />
        {words.openInWallet}
      </a>
    )
  const code = <Qr selected={selected} key="qr" />
  const fields = (
    <div class="fields" key="fields">
      <Field
        kind="amount"
        label={isPartial ? words.amountMissing : words.amountToSend}
        text={selected.due_amount}
        done={words.amountCopied}
      >
        <Amount amount={selected.due_amount} ticker={ticker} />
      </Field>
      <Field
        kind="address"
        label={words.address}
        text={selected.address}
        done={words.addressCopied}
      >
        <Code text={selected.address} />
      </Field>
      <Tag selected={selected} />
      <p class="network-warning">
        <WarningIcon />
        <span>{say(words.networkWarning, { ticker, network: selected.network_name })}</span>
      </p>
    </div>
  )
  return (
    <div class="screen">
      <Status shape={shape} tone={tone} title={words[title]} detail={detail} />
      <div class="with">
        <Badge ticker={ticker} />
        <p class="with-words" id="with">
          <span class="with-name">{selected.name}</span>
          <span class="with-network">
            {say(words.onNetwork, { network: selected.network_name })}
          </span>
        </p>
        {onChange ? (
          <button type="button" class="button quiet" aria-describedby="with" onClick={onChange}>
            {words.change}
          </button>
        ) : null}
      </div>
      <div class={isHandheld ? 'ways is-handheld' : 'ways'}>
        {isHandheld
          ? [open, fields, code]
          : [
              code,
              <div class="ways-words" key="words">
                {fields}
                {open}
              </div>,
            ]}
      </div>
      <Payments payments={state.payments} />
    </div>
  )
}
