import { useState } from 'preact/hooks'
import type { CheckoutState, Choice } from '../../state.ts'
import { useSpeech } from '../language.ts'
import { Amount } from '../parts/amount.tsx'
import { ChevronIcon } from '../parts/icons.tsx'
import { announce } from '../parts/announcer.tsx'

export const Badge = ({ ticker }: { ticker: string }) => (
  <span class="badge" aria-hidden="true">
    {ticker.slice(0, 4)}
  </span>
)

/** Groups assets of the same coin, in the order of the first of each. */
function groupsOf(assets: readonly Choice[]): Choice[][] {
  const groups = new Map<string, Choice[]>()
  for (const asset of assets) groups.set(asset.ticker, [...(groups.get(asset.ticker) ?? []), asset])
  return [...groups.values()]
}

/** Choice of the asset to pay with: each coin once, with its networks below it. */
export function Choose({
  state,
  onChoose,
}: {
  state: CheckoutState
  onChoose: (asset: string) => Promise<boolean>
}) {
  const { words, say } = useSpeech()
  const [confirming, setAsked] = useState<string | null>(null)
  const [isFailed, setFailed] = useState(false)
  const choose = async (asset: string) => {
    if (confirming !== null) return
    setAsked(asset)
    setFailed(false)
    if (await onChoose(asset)) return
    setAsked(null)
    setFailed(true)
    announce(words.assetFailed)
  }
  const row = (choice: Choice, isAlone: boolean) => (
    <button
      type="button"
      key={choice.asset}
      class="choice"
      aria-busy={confirming === choice.asset}
      aria-disabled={confirming !== null}
      data-asset={choice.asset}
      onClick={() => void choose(choice.asset)}
    >
      {isAlone ? <Badge ticker={choice.ticker} /> : <span class="branch" aria-hidden="true" />}
      <span class="choice-words">
        {isAlone ? <span class="choice-name">{choice.name}</span> : null}
        <span class={isAlone ? 'choice-network' : 'choice-name'}>
          {say(words.onNetwork, { network: choice.network_name })}
        </span>
        {choice.requires_tag ? <span class="choice-network">{words.tagNeeded}</span> : null}
      </span>
      <Amount amount={choice.crypto_amount} ticker={choice.ticker} />
      <ChevronIcon />
    </button>
  )
  return (
    <div class="screen">
      <div class="heading">
        <h2 class="status-title" tabIndex={-1}>
          {words.choose}
        </h2>
        <p class="status-detail">{words.chooseHint}</p>
      </div>
      <p class="choose-problem" role={isFailed ? 'alert' : undefined}>
        {isFailed ? words.assetFailed : null}
      </p>
      <ul class="choices">
        {groupsOf(state.assets).map((group) => {
          const [first] = group as [Choice]
          return (
            <li key={first.ticker} class="coin">
              {group.length === 1 ? (
                row(first, true)
              ) : (
                <>
                  <p class="coin-name" id={`coin-${first.ticker}`}>
                    <Badge ticker={first.ticker} />
                    {first.name}
                  </p>
                  <ul aria-labelledby={`coin-${first.ticker}`}>
                    {group.map((choice) => (
                      <li key={choice.asset}>{row(choice, false)}</li>
                    ))}
                  </ul>
                </>
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}
