// Tap or hold, with a pointer or with Enter and the space bar; Escape gives a hold up.

const HOLD = 400; // milliseconds until a press is a hold

/** Call `tap()`, or `hold()` and then `release()` or `giveUp()`. */
export function pressable(element, { tap, hold, release, giveUp }) {
  let timer = null;
  let holding = false;
  let swallow = false; // the click that follows a press which was handled

  const press = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      holding = true;
      hold();
    }, HOLD);
  };
  // Returns whether the press was short.
  const lift = () => {
    const short = timer !== null;
    clearTimeout(timer);
    timer = null;
    if (holding) {
      holding = false;
      release();
    }
    return short;
  };
  const abandon = () => {
    clearTimeout(timer);
    timer = null;
    if (holding) {
      holding = false;
      giveUp();
    }
  };

  element.addEventListener('pointerdown', (event) => {
    if (event.button === 0) {
      swallow = false;
      window.addEventListener('pointerup', lifted);
      window.addEventListener('pointercancel', lifted);
      press();
    }
  });
  // The pointer may be lifted elsewhere: what is held moves, and so does the hand.
  const lifted = () => {
    window.removeEventListener('pointerup', lifted);
    window.removeEventListener('pointercancel', lifted);
    swallow = holding;
    lift();
  };
  element.addEventListener('click', (event) => {
    event.preventDefault();
    if (!swallow) {
      tap();
    }
    swallow = false;
  });
  // A finger that holds must not scroll the page.
  element.addEventListener('touchmove', (event) => holding && event.preventDefault(), { passive: false });
  element.addEventListener('contextmenu', (event) => event.preventDefault());

  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      abandon();
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (!event.repeat) {
        press();
      }
    }
  });
  element.addEventListener('keyup', (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (lift()) {
        tap();
      }
    }
  });
  element.addEventListener('blur', () => {
    if (timer !== null || holding) {
      lift();
    }
  });
}
