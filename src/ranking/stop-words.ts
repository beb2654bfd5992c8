/** English function words, question words included: they say how something is asked, not what about. Apostrophes are already gone. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above after again against all also am an and any are arent as at be because been before being below between
  both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each either else ever every
  few for from further get gets got had hadnt has hasnt have havent having he her here hers herself hes hid him himself
  his how however i id if ill im in into is isnt it itd itll its itself ive just let lets like may me might more most
  much must my myself neither nor of off on once one only or other our ours ourselves out over own per please quite
  rather re really s same shall she shes should shouldnt since so some such t than that thats the their theirs them
  themselves then there theres these they theyd theyll theyre theyve this those though through thus to too under until
  up upon us very via was wasnt we were werent weve what whats when whens where wheres which while who whom whos whose
  why will with within without wont would wouldnt yet you youd youll your youre yours yourself yourselves youve`.split(
    /\s+/,
  ),
);
